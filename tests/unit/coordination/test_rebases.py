"""Rebases: where the horizon lies, and how it lies to the bucket's age."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import REBASES, Rebase, Rebases
from crewlet.coordination.records.rebases import is_past_horizon, rebased
from crewlet.testing import VirtualClock, run_virtual

NOW = datetime(2030, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(("age", "past"), [(29 * DAY, False), (29 * DAY + timedelta(seconds=1), True), (-DAY, False)])
def test_the_horizon_is_twenty_nine_days(age: timedelta, past: bool) -> None:
    assert is_past_horizon(NOW - age, now=NOW) is past


def test_an_attempt_inherits_within_the_horizon_and_mints_past_it() -> None:
    inherited = Rebase(work_key="w1", instant=NOW - 29 * DAY)
    forgotten = Rebase(work_key="w1", instant=NOW - 30 * DAY)

    assert rebased(None, work_key="w1", now=NOW) == Rebase(work_key="w1", instant=NOW)
    assert rebased(inherited, work_key="w1", now=NOW) == inherited
    assert rebased(forgotten, work_key="w1", now=NOW) == Rebase(work_key="w1", instant=NOW)


def test_a_record_lives_a_day_longer_than_it_is_inherited() -> None:
    assert REBASES.age_s == limits.REBASE_HORIZON_S + DAY.total_seconds()


@pytest.mark.spec("C-133")
def test_a_record_is_forgotten_when_nobody_could_inherit_it_and_not_sooner() -> None:
    async def run() -> None:
        store = MemoryRecordStore(MemoryBucket(REBASES, VirtualClock()))
        rebases = Rebases(store, VirtualClock())
        began_at = VirtualClock().now() - 60 * DAY
        minted = await rebases.instant("w1", began_at=began_at)
        await asyncio.sleep(29 * 86400.0)
        at_the_horizon = await rebases.instant("w1", began_at=began_at)
        await asyncio.sleep(86400.0 - 1)
        kept = await store.list("work.>")
        await asyncio.sleep(1)

        assert at_the_horizon == minted
        assert len(kept) == 1
        assert await store.list("work.>") == []

    run_virtual(run(), limit_s=40 * 86400.0)
