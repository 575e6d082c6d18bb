"""Appends of which nobody heard at first, and logs that were lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from crewlet.base.errors import Unavailable
from crewlet.queue import Log, Logged, LogRecord, Superseded, Tail
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.log_appends import LONG, one
from crewlet.testing.contracts.log_harness import LogHarness
from crewlet.testing.waiting import wait_until

__all__ = ["LostLogs", "UnheardAppends"]


class UnheardAppends(Contract):
    """An answer that is lost is looked for; what landed counts, and lands once."""

    async def test_an_append_whose_answer_was_lost_is_done_once(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()

        logs.lose_reply(here)
        first = await here.append(logs.seat, one("a"), expected=0)
        logs.lose_reply(here)
        second = await here.append(logs.seat, one("b", LONG), expected=first)

        assert await there.read(logs.seat) == [Logged(first, "a", b"x"), Logged(second, "b", LONG)]

    async def test_an_append_that_arrives_late_is_done_once(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()

        logs.withhold(here)
        first = await here.append(logs.seat, one("a"), expected=0)
        logs.withhold(here)
        second = await here.append(logs.seat, one("b", LONG), expected=first)
        await logs.deliver(here)

        assert [record.id for record in await there.read(logs.seat)] == ["a", "b"]
        assert await there.tail(logs.seat) == Tail(second, "b")

    async def test_a_first_append_that_arrives_late_begins_no_purged_log(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        logs.withhold(here)
        await here.append(logs.seat, one("a"), expected=0)

        await there.purge(logs.seat)
        await logs.deliver(here)

        assert await there.tail(logs.seat) == Tail(0)

    async def test_an_append_waits_for_the_link_and_is_done_once(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)

        logs.cut_after_write(here)
        async with asyncio.TaskGroup() as group:
            appending = group.create_task(here.append(logs.seat, one("b", LONG), expected=first))
            await _more_than(there, logs.seat, first)
            await logs.mend(here)

        second = appending.result()

        assert await there.read(logs.seat) == [Logged(first, "a", b"x"), Logged(second, "b", LONG)]

    async def test_nobody_answering_is_unknown_in_the_end_and_the_tail_tells(self, logs: LogHarness) -> None:
        here, far = await logs.client(), [await logs.client(), await logs.client()]
        first = await here.append(logs.seat, one("a"), expected=0)
        other = await here.append(logs.other, one("a"), expected=0)
        logs.cut_after_write(far[0])
        await logs.cut(far[1])

        outcomes = await asyncio.gather(
            far[0].append(logs.seat, one("landed"), expected=first),
            far[1].append(logs.other, one("lost"), expected=other),
            far[1].tail(logs.other),
            far[1].read(logs.other),
            return_exceptions=True,
        )
        await logs.mend(*far)

        assert all(isinstance(outcome, Unavailable) for outcome in outcomes), outcomes
        assert (await far[0].tail(logs.seat)).id == "landed"
        assert await far[1].tail(logs.other) == Tail(other, "a")

    async def test_an_append_that_landed_counts_though_another_stands_on_top(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)

        logs.cut_after_write(here)
        async with asyncio.TaskGroup() as group:
            appending = group.create_task(here.append(logs.seat, one("b"), expected=first))
            second = await _on_top_of(there, logs.seat, first, one("c"))
            await logs.mend(here)

        assert first < appending.result() < second
        assert [record.id for record in await there.read(logs.seat)] == ["a", "b", "c"]

    async def test_what_somebody_else_appended_is_never_taken_for_ones_own(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)
        logs.withhold(here)

        async with asyncio.TaskGroup() as group:
            appending = group.create_task(_outcome(here.append(logs.seat, one("same"), expected=first)))
            await asyncio.sleep(0)
            second = await there.append(logs.seat, one("same"), expected=first)
        await logs.deliver(here)

        refused = appending.result()
        assert isinstance(refused, Superseded)
        assert refused.tail == Tail(second, "same")
        assert [record.id for record in await there.read(logs.seat)] == ["a", "same"]

    async def test_a_long_append_is_cut_short_by_another_writer(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)

        logs.cut_after_write(here)
        async with asyncio.TaskGroup() as group:
            appending = group.create_task(_outcome(here.append(logs.seat, one("long", LONG), expected=first)))
            second = await _on_top_of(there, logs.seat, first, one("resumed"))
            await logs.mend(here)

        refused = appending.result()
        assert isinstance(refused, Superseded)
        assert (refused.expected, refused.tail) == (first, Tail(second, "resumed"))
        assert [record.id for record in await there.read(logs.seat)] == ["a", "resumed"]

    async def test_an_append_given_up_by_its_caller_lands_once_or_not_at_all(self, logs: LogHarness) -> None:
        log = await logs.client()
        tail, landed = await log.tail(logs.seat), list[str]()

        for turns in range(8):
            name = f"r{turns}"
            async with asyncio.TaskGroup() as group:
                appending = group.create_task(log.append(logs.seat, one(name, LONG), expected=tail.sequence))
                for _ in range(turns):
                    await asyncio.sleep(0)
                appending.cancel()
            tail = await _settled(log, logs.seat)
            landed += [name] if tail.id == name else []

        at = await log.append(logs.seat, one("end"), expected=tail.sequence)
        assert [record.id for record in await log.read(logs.seat)] == [*landed, "end"]
        assert await log.tail(logs.seat) == Tail(at, "end")

    async def test_through_changes_of_leader_each_append_is_done_once(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()

        async def disturbed() -> None:
            for _ in range(2):
                await logs.disturb()

        async with asyncio.TaskGroup() as group:
            group.create_task(disturbed())
            at = 0
            for number in range(30):
                at = await _patiently(here, logs.seat, one(f"r{number}", b"x" * 1500), at)

        assert [record.id for record in await there.read(logs.seat)] == [f"r{number}" for number in range(30)]


class LostLogs(Contract):
    """A broker that keeps the logs in memory alone loses them with it."""

    async def test_a_holder_learns_from_its_next_append_that_the_log_was_lost(self, logs: LogHarness) -> None:
        log = await logs.client()
        first = await log.append(logs.seat, one("a"), expected=0)

        await logs.lose()
        with pytest.raises(Superseded) as refused:
            await log.append(logs.seat, one("b"), expected=first)

        assert refused.value.tail == Tail(0)
        assert (await log.tail(logs.seat), await log.read(logs.seat)) == (Tail(0), [])

    async def test_a_log_made_anew_never_comes_to_a_sequence_that_was(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)
        second = await here.append(logs.seat, one("b"), expected=first)

        await logs.lose()
        at = 0
        for number in range(4):
            at = await there.append(logs.seat, one(f"r{number}"), expected=at)
            assert at > second
        with pytest.raises(Superseded):
            await here.append(logs.seat, one("c"), expected=second)

        assert len(await here.read(logs.seat)) == 4


async def _outcome(appending: Awaitable[int]) -> int | Superseded:
    try:
        return await appending
    except Superseded as refused:
        return refused


async def _more_than(log: Log, seat: str, sequence: int) -> Tail:
    """The tail, once something stands on top of ``sequence``."""

    async def is_more() -> bool:
        return (await log.tail(seat)).sequence != sequence

    await wait_until(is_more, what="something on top of the log")
    return await log.tail(seat)


async def _on_top_of(log: Log, seat: str, expected: int, records: list[LogRecord]) -> int:
    """Add on top of whatever comes to stand on ``expected``."""
    return await log.append(seat, records, expected=(await _more_than(log, seat, expected)).sequence)


async def _settled(log: Log, seat: str) -> Tail:
    """The tail, once two looks agree: what was sent by who gave up may still be on its way."""
    while True:
        before = await log.tail(seat)
        await asyncio.sleep(0.02)
        if await log.tail(seat) == before:
            return before


async def _patiently(log: Log, seat: str, records: list[LogRecord], expected: int) -> int:
    """Append once, through outages that are longer than one append waits."""
    while True:
        try:
            return await log.append(seat, records, expected=expected)
        except Unavailable:
            tail = await _known(log, seat)
            if tail.id == records[-1].id:
                return tail.sequence
            expected = tail.sequence


async def _known(log: Log, seat: str) -> Tail:
    while True:
        try:
            return await log.tail(seat)
        except Unavailable:
            await asyncio.sleep(0.05)
