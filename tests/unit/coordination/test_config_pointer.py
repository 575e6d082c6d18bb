"""The config pointer: how one activation follows another, and that it stands however long nobody moves it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.coordination import CONFIG, ConfigPointer, ConfigPointers
from crewlet.coordination.records.config_pointer import pointed
from crewlet.testing import VirtualClock, run_virtual

AT = datetime(2030, 1, 1, tzinfo=UTC)
FIRST = ConfigPointer(activation_id="a1", revision_id="r1", activated_by="ada", activated_at=AT)


@pytest.mark.parametrize(("at_s", "dated_s"), [(60, 60), (0, 0.001), (-60, 0.001)])
def test_an_activation_is_dated_by_its_node_unless_that_is_before_the_last(at_s: float, dated_s: float) -> None:
    second = replace(FIRST, activation_id="a2", activated_at=AT + timedelta(seconds=at_s))

    assert pointed(FIRST, second).activated_at == AT + timedelta(seconds=dated_s)


def test_the_first_activation_is_as_it_was_asked_for() -> None:
    assert pointed(None, FIRST) == FIRST


def test_an_activation_keeps_what_a_newer_build_wrote_and_has_its_own_of_the_rest() -> None:
    standing = replace(FIRST, summary="first", unknown={"seal": 1, "colour": "red"})

    second = pointed(standing, replace(FIRST, activation_id="a2", revision_id="r2", unknown={"colour": "blue"}))

    assert (second.revision_id, second.summary, second.unknown) == ("r2", "", {"seal": 1, "colour": "blue"})


@pytest.mark.spec("C-129")
def test_the_pointer_stands_however_long_nobody_moves_it() -> None:
    async def run() -> None:
        pointers = ConfigPointers(MemoryRecordStore(MemoryBucket(CONFIG, VirtualClock())))
        published = await pointers.publish(FIRST)

        await asyncio.sleep(10 * 365 * 86400.0)

        assert await pointers.current() == published

    run_virtual(run(), limit_s=11 * 365 * 86400.0)
