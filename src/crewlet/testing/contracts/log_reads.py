"""What is read of a seat's log: what has an end, in order, and nothing unreadable passed over in silence."""

from __future__ import annotations

from typing import Final

import pytest

from crewlet.queue import Logged, LogUnreadable, Superseded, Tail
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.log_appends import LONG, one
from crewlet.testing.contracts.log_harness import Fragment, LogHarness

__all__ = ["LogReads", "LogRemains", "LogTrims"]

_NO_RECORDS: Final[tuple[Fragment, ...]] = ("garbage", "unreadable")


class LogReads(Contract):
    """Tails and reads."""

    async def test_a_log_that_never_was_is_empty(self, logs: LogHarness) -> None:
        log = await logs.client()

        assert await log.tail(logs.seat) == Tail(0)
        assert await log.read(logs.seat) == []

    async def test_a_tail_names_the_last_record_whoever_added_it(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, [*one("a"), *one("b")], expected=0)
        before = await there.tail(logs.seat)
        second = await here.append(logs.seat, one("c", LONG), expected=first)

        assert (before, await there.tail(logs.seat)) == (Tail(first, "b"), Tail(second, "c"))

    async def test_a_read_begins_behind_what_it_names(self, logs: LogHarness) -> None:
        log = await logs.client()
        first = await log.append(logs.seat, one("a"), expected=0)
        second = await log.append(logs.seat, one("b", LONG), expected=first)
        third = await log.append(logs.seat, one("c"), expected=second)

        assert [record.id for record in await log.read(logs.seat, after=first)] == ["b", "c"]
        assert [record.id for record in await log.read(logs.seat, after=second)] == ["c"]
        assert await log.read(logs.seat, after=third) == []

    async def test_what_is_acknowledged_is_read_whoever_leads(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        at = 0

        for number in range(12):
            if number % 4 == 1:
                await logs.disturb()
            at = await here.append(logs.seat, one(f"r{number}"), expected=at)
            assert await there.tail(logs.seat) == Tail(at, f"r{number}")

        assert [record.id for record in await there.read(logs.seat)] == [f"r{number}" for number in range(12)]


class LogRemains(Contract):
    """What stands in a log that no append left there whole."""

    async def test_an_append_without_its_end_does_not_exist_and_hinders_no_other(self, logs: LogHarness) -> None:
        log = await logs.client()
        first = await log.append(logs.seat, one("a"), expected=0)

        left = await logs.leave(logs.seat, "beginning")
        tail, alone = await log.tail(logs.seat), await log.read(logs.seat)
        with pytest.raises(Superseded) as refused:
            await log.append(logs.seat, one("b"), expected=first)
        await log.append(logs.seat, one("b", LONG), expected=left)

        assert (tail, refused.value.tail) == (Tail(left), Tail(left))
        assert [record.id for record in alone] == ["a"]
        assert [record.id for record in await log.read(logs.seat)] == ["a", "b"]

    async def test_what_is_no_record_is_said_where_it_stands(self, logs: LogHarness) -> None:
        log = await logs.client()

        for seat, fragment in zip((logs.seat, logs.other), _NO_RECORDS, strict=True):
            await log.append(seat, one("a"), expected=0)
            left = await logs.leave(seat, fragment)
            tail = await log.tail(seat)
            await log.append(seat, one("b"), expected=left)
            with pytest.raises(LogUnreadable) as said:
                await log.read(seat)

            assert tail == Tail(left)
            assert (said.value.seat, said.value.sequence) == (seat, left)
            assert [record.id for record in await log.read(seat, after=left)] == ["b"]

    async def test_an_end_without_its_beginning_is_said_where_it_stands(self, logs: LogHarness) -> None:
        log = await logs.client()
        await log.append(logs.seat, one("a"), expected=0)
        left = await logs.leave(logs.seat, "end")

        with pytest.raises(LogUnreadable) as said:
            await log.read(logs.seat)

        assert said.value.sequence == left

    async def test_an_end_that_outlived_its_beginning_is_over(self, logs: LogHarness) -> None:
        log = await logs.client()
        left = await logs.leave(logs.seat, "end")

        at = await log.append(logs.seat, one("a"), expected=left)

        assert await log.read(logs.seat) == [Logged(at, "a", b"x")]


class LogTrims(Contract):
    """What is taken away."""

    async def test_a_trim_takes_what_is_over_and_nothing_behind_it(self, logs: LogHarness) -> None:
        log = await logs.client()
        first = await log.append(logs.seat, one("a", LONG), expected=0)
        second = await log.append(logs.seat, one("b", LONG), expected=first)
        await log.append(logs.seat, one("c"), expected=second)

        for _ in range(2):
            await log.trim(logs.seat, through=first)
            assert [record.id for record in await log.read(logs.seat)] == ["b", "c"]

        await log.trim(logs.seat, through=second)
        await log.trim(logs.seat, through=first)
        assert [record.id for record in await log.read(logs.seat)] == ["c"]

    async def test_the_newest_append_is_never_trimmed(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)
        second = await here.append(logs.seat, [*one("b", LONG), *one("c")], expected=first)

        for through in (second, second + 1_000_000):
            await here.trim(logs.seat, through=through)

            assert [record.id for record in await there.read(logs.seat)] == ["b", "c"]
            assert await there.tail(logs.seat) == Tail(second, "c")
        assert await there.append(logs.seat, one("d"), expected=second) > second

    async def test_a_trim_leaves_what_the_next_append_must_expect(self, logs: LogHarness) -> None:
        log = await logs.client()
        first = await log.append(logs.seat, one("a"), expected=0)
        left = await logs.leave(logs.seat, "beginning")

        await log.trim(logs.seat, through=left)

        assert await log.tail(logs.seat) == Tail(left)
        with pytest.raises(Superseded):
            await log.append(logs.seat, one("b"), expected=0)
        assert await log.append(logs.seat, one("b"), expected=left) > first

    async def test_a_trim_of_nothing_is_harmless(self, logs: LogHarness) -> None:
        log = await logs.client()

        await log.trim(logs.seat, through=10)
        at = await log.append(logs.seat, one("a"), expected=0)
        following = await log.append(logs.seat, one("b"), expected=at)
        for nothing in (0, -1):
            await log.trim(logs.seat, through=nothing)

        assert [record.sequence for record in await log.read(logs.seat)] == [at, following]

    async def test_a_purged_log_begins_anew_above_what_it_was(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)

        await there.purge(logs.seat)
        await there.purge(logs.seat)
        assert (await here.tail(logs.seat), await here.read(logs.seat)) == (Tail(0), [])
        with pytest.raises(Superseded) as refused:
            await here.append(logs.seat, one("b"), expected=first)
        again = await here.append(logs.seat, one("b"), expected=0)

        assert refused.value.tail == Tail(0)
        assert again > first
        assert [record.id for record in await there.read(logs.seat)] == ["b"]
