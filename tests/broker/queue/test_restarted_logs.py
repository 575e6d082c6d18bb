"""The broker under a seat's log is killed: what it keeps on a disk goes on, what it kept in memory begins anew."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker, JetStream, JetStreamLog, JetStreamQueue
from crewlet.backends.nats.jetstream_types import ns
from crewlet.base import limits
from crewlet.queue import LogRecord, Superseded, Tail
from crewlet.testing.brokers import connected_wire, running_broker
from crewlet.testing.ids import SeededIds
from crewlet.testing.waiting import wait_until
from tests.broker.queue.rig import SCALED

pytestmark = pytest.mark.slow

SEAT = "ada"


def kill(broker: EmbeddedBroker) -> None:
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)


def one(name: str) -> list[LogRecord]:
    return [LogRecord(name, b"x" * 100)]


async def test_appends_go_on_over_a_crash_of_the_broker_each_once(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(400)]
    async with running_broker(store_dir=tmp_path, sync_interval_s=60.0) as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage=broker.storage)
        await queue.start()
        log = JetStreamLog(JetStream(wire), ids=SeededIds())

        at = 0
        for number, name in enumerate(names):
            if number == 100:
                asyncio.get_running_loop().call_soon(kill, broker)
            at = await log.append(SEAT, one(name), expected=at)
        found = await log.read(SEAT)
        await queue.close()

    assert [record.id for record in found] == names


async def test_the_holder_of_a_log_that_a_memory_broker_lost_is_told_by_its_next_append() -> None:
    async with running_broker() as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage="memory")
        await queue.start()
        log = JetStreamLog(JetStream(wire), ids=SeededIds())
        first = await log.append(SEAT, one("a"), expected=0)

        kill(broker)
        with pytest.raises(Superseded) as refused:
            await log.append(SEAT, one("b"), expected=first)
        again = await log.append(SEAT, one("b"), expected=0)
        found = await log.read(SEAT)
        await queue.close()

    assert refused.value.tail == Tail(0)
    assert again > first
    assert [record.id for record in found] == ["b"]


async def test_a_large_append_is_read_as_it_was_under_the_settings_that_ship(tmp_path: Path) -> None:
    payload = os.urandom(1024) * 5000
    async with running_broker(store_dir=tmp_path, sync_interval_s=60.0) as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage=broker.storage)
        await queue.start()
        log = JetStreamLog(JetStream(wire), ids=SeededIds())

        at = await log.append(SEAT, [LogRecord("large", payload)], expected=0)
        found = await log.read(SEAT)
        info = await JetStream(wire).stream_info(topics.STREAM_JOURNAL)
        await queue.close()

    assert [(record.sequence, record.payload == payload) for record in found] == [(at, True)]
    assert info is not None
    assert info.state.messages == 5
    assert (info.config.max_age, info.config.discard) == (ns(limits.JOURNAL_RETENTION_S), "new")


async def test_what_is_older_than_its_age_goes_the_newest_too_and_no_sequence_comes_again(tmp_path: Path) -> None:
    async with running_broker(store_dir=tmp_path, sync_interval_s=60.0) as broker, connected_wire(broker) as wire:
        api = JetStream(wire)
        queue = JetStreamQueue(wire, api, node="one", config=SCALED, storage=broker.storage)
        await queue.start()
        await api.stream_change(topics.STREAM_JOURNAL, {"max_age": ns(0.3), "duplicate_window": ns(0.3)})
        log = JetStreamLog(api, ids=SeededIds())
        first = await log.append(SEAT, one("a"), expected=0)

        async def is_gone() -> bool:
            return await log.tail(SEAT) == Tail(0)

        await wait_until(is_gone, what="a log that is over")
        with pytest.raises(Superseded) as refused:
            await log.append(SEAT, one("b"), expected=first)
        again = await log.append(SEAT, one("b"), expected=0)
        await queue.close()

    assert refused.value.tail == Tail(0)
    assert again > first
