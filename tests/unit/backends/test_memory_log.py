"""What the log's twin does that no case of the suite can wait for."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.backends.memory import MemoryLog, MemoryLogStream
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.queue import LogRecord, Superseded, Tail
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

SEAT = "ada"
RECORDS = [LogRecord("r", b"x")]


async def test_what_is_older_than_its_age_goes_the_newest_too_and_no_sequence_comes_again() -> None:
    log = MemoryLog(MemoryLogStream(VirtualClock()))
    first = await log.append(SEAT, RECORDS, expected=0)
    await asyncio.sleep(limits.JOURNAL_RETENTION_S / 2)
    second = await log.append(SEAT, RECORDS, expected=first)

    await asyncio.sleep(limits.JOURNAL_RETENTION_S / 2 + 1)
    assert [record.sequence for record in await log.read(SEAT)] == [second]
    await asyncio.sleep(limits.JOURNAL_RETENTION_S / 2)
    with pytest.raises(Superseded) as refused:
        await log.append(SEAT, RECORDS, expected=second)

    assert refused.value.tail == Tail(0)
    assert await log.append(SEAT, RECORDS, expected=0) > second


async def test_an_append_that_nobody_answers_waits_for_as_long_as_ships() -> None:
    log = MemoryLog(MemoryLogStream(VirtualClock()))
    log.stream.cut = True
    began_s = asyncio.get_running_loop().time()

    with pytest.raises(Unavailable):
        await log.append(SEAT, RECORDS, expected=0)

    assert asyncio.get_running_loop().time() - began_s == pytest.approx(limits.JOURNAL_APPEND_S, abs=1.0)


async def test_an_append_goes_on_once_the_broker_is_back() -> None:
    log = MemoryLog(MemoryLogStream(VirtualClock()))
    log.stream.cut = True

    async with asyncio.TaskGroup() as group:
        appending = group.create_task(log.append(SEAT, RECORDS, expected=0))
        await asyncio.sleep(limits.JOURNAL_APPEND_S / 2)
        log.stream.cut = False

    assert appending.result() == 1
