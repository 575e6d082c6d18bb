"""After thousands of listings, watches and sweeps everything is as it was: consumers, tasks, subscriptions, memory."""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from datetime import UTC, datetime

import psutil
import pytest

from crewlet.backends.nats import Connection, EmbeddedBroker, JetStream, NatsRecordStore
from crewlet.testing import wait_until

FULL = bool(os.environ.get("CREWLET_FULL_CHURN"))
LISTINGS = 10_000 if FULL else 300
AT_ONCE = 8
SLACK = 150
"""Objects that come and go by themselves; one that each listing left behind would be more."""
BROKER_SLACK_KIB = 32 * 1024
OF_THE_LOOP = {"TimerHandle", "Context"}
"""The loop keeps the timers of what was not too late for a while, and never many."""


@pytest.mark.slow
@pytest.mark.timeout(1800 if FULL else 60)
async def test_all_is_as_it_was(
    broker: EmbeddedBroker, wire: Connection, jetstream: JetStream, store: NatsRecordStore
) -> None:
    for number in range(5):
        await store.create(f"seat.s{number}", b"1")
    await _many(store, 200)
    tasks, objects, broker_kib = len(asyncio.all_tasks()), _objects(), _kib(broker.pid)

    await _many(store, LISTINGS)

    assert await jetstream.consumer_names("KV_crewlet_tested") == []
    await wait_until(lambda: len(asyncio.all_tasks()) == tasks, what="as many tasks as before")
    assert wire.pending_requests == 0
    grown = _objects() - objects
    grown_there_kib = _kib(broker.pid) - broker_kib
    print(f"\nafter {LISTINGS} listings: {grown.total()} more objects here, {grown_there_kib} KiB there")
    assert grown.total() < SLACK, grown.most_common(10)
    assert grown_there_kib < BROKER_SLACK_KIB


async def _many(store: NatsRecordStore, listings: int) -> None:
    async def some(number: int) -> None:
        for _ in range(listings // AT_ONCE):
            assert len(await store.list("seat.>")) == 5
        async with store.watch("seat.>") as watch:
            assert len(watch.answer) == 5
        if number == 0:
            assert await store.purge_markers(before=datetime.now(UTC)) == 0

    async with asyncio.TaskGroup() as group:
        for number in range(AT_ONCE):
            group.create_task(some(number))


def _objects() -> Counter[str]:
    gc.collect()
    names = (type(each).__name__ for each in gc.get_objects())
    return Counter(name for name in names if name not in OF_THE_LOOP)


def _kib(pid: int) -> int:
    return psutil.Process(pid).memory_info().rss // 1024
