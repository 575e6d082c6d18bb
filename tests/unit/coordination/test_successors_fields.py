"""What a newer build wrote into a record is still there when this build has written it anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

import msgspec
import pytest

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.clock import Clock
from crewlet.coordination import (
    CLAIMS,
    CONFIG,
    COOLDOWNS,
    FOLLOWS,
    RATE,
    REBASES,
    STATUS,
    ConfigPointer,
    ConfigPointers,
    Cooldown,
    Cooldowns,
    DeliveryClaims,
    Follows,
    NodeStatus,
    NodeStatuses,
    RateValve,
    Rebases,
    RecordStore,
    Revision,
    Slot,
)
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

Step = Callable[[RecordStore, Clock, int], Awaitable[object]]


async def activates(store: RecordStore, clock: Clock, time: int) -> object:
    pointers = ConfigPointers(store)
    current = await pointers.current()
    wanted = ConfigPointer(
        activation_id=f"a{time}", revision_id=f"r{time}", activated_by="ada", activated_at=clock.now()
    )
    return await pointers.activate(wanted, expected=Revision(0) if current is None else current.epoch)


async def reports(store: RecordStore, clock: Clock, time: int) -> object:
    status = NodeStatus(
        node="north", epoch=time, revision_id="r", status="ok", posture="serve", reported_at=clock.now()
    )
    return await NodeStatuses(store).report(status)


async def claims(store: RecordStore, clock: Clock, time: int) -> object:
    return await DeliveryClaims(store, clock).claim("github", "d1", claimant=f"c{time}", ttl_s=1.0)


async def passes(store: RecordStore, clock: Clock, time: int) -> object:
    return await RateValve(store, Random(7)).admits("ceo", cap=5)


async def cools(store: RecordStore, clock: Clock, time: int) -> object:
    until: datetime = clock.now() + timedelta(hours=1)
    cooldown = Cooldown(provider_key="fast", hint="0123456789ab", until=until, reason="auth", reported_by="north")
    return await Cooldowns(store).publish(cooldown)


async def rebases(store: RecordStore, clock: Clock, time: int) -> object:
    began_at = clock.now() - timedelta(days=60)
    later = Shifted(clock, timedelta(days=30 * time))
    return await Rebases(store, later).instant("w1", began_at=began_at)


async def follows(store: RecordStore, clock: Clock, time: int) -> object:
    return await Follows(store, clock).follow("slack", "ceo", "C1", "t1", reason=f"reason {time}")


@dataclass(frozen=True, slots=True)
class Shifted:
    clock: Clock
    by: timedelta

    def now(self) -> datetime:
        return self.clock.now() + self.by

    def elapsed_s(self) -> float:
        return self.clock.elapsed_s()


@pytest.mark.parametrize(
    ("slot", "pattern", "step"),
    [
        (CONFIG, "company.>", activates),
        (STATUS, "node.>", reports),
        (CLAIMS, "delivery.>", claims),
        (RATE, "seat.>", passes),
        (COOLDOWNS, "credential.>", cools),
        (REBASES, "work.>", rebases),
        (FOLLOWS, "slack.>", follows),
    ],
    ids=lambda part: part.name if isinstance(part, Slot) else "",
)
async def test_a_rewrite_keeps_a_successors_fields(slot: Slot, pattern: str, step: Step) -> None:
    clock = VirtualClock()
    store = MemoryRecordStore(MemoryBucket(slot, clock))
    await step(store, clock, 1)
    [record] = await store.list(pattern)
    newer = msgspec.json.encode({**msgspec.json.decode(record.value), "mood": {"level": 3}})
    rewritten = await store.update(record.key, newer, expected=record.revision)
    await asyncio.sleep(2)

    await step(store, clock, 2)

    [now] = await store.list(pattern)
    assert now.revision > rewritten.revision
    assert msgspec.json.decode(now.value)["mood"] == {"level": 3}
