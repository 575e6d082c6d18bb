"""What an append to a seat's log promises: on top of what it expects, whole, once, and nobody else's."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base import limits
from crewlet.base.errors import PayloadTooLarge
from crewlet.queue import Log, LogFull, Logged, LogRecord, Superseded, Tail
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.log_harness import PART_BYTES, ROOM_BYTES, LogHarness

__all__ = ["LONG", "FullLogs", "LogAppends", "one"]

LONG = bytes(range(256)) * (5 * PART_BYTES // 256)


def one(name: str, payload: bytes = b"x") -> list[LogRecord]:
    """A single record."""
    return [LogRecord(name, payload)]


class LogAppends(Contract):
    """Appends that are heard of."""

    async def test_what_one_node_appends_another_reads_as_it_was(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()

        first = await here.append(logs.seat, one("a", b"\x00\xff\r\n\x00"), expected=0)
        second = await here.append(logs.seat, one("b", b""), expected=first)

        assert await there.read(logs.seat) == [Logged(first, "a", b"\x00\xff\r\n\x00"), Logged(second, "b", b"")]
        assert 0 < first < second

    async def test_records_of_one_append_keep_their_order_and_share_its_sequence(self, logs: LogHarness) -> None:
        log = await logs.client()

        at = await log.append(logs.seat, [LogRecord("b", b"1"), LogRecord("a", b"2"), LogRecord("b", b"3")], expected=0)

        assert await log.read(logs.seat) == [Logged(at, "b", b"1"), Logged(at, "a", b"2"), Logged(at, "b", b"3")]

    async def test_a_long_append_is_read_as_one(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()

        first = await here.append(logs.seat, [LogRecord("long", LONG), LogRecord("short", b"x")], expected=0)
        second = await here.append(logs.seat, one("next"), expected=first)

        assert await there.read(logs.seat) == [
            Logged(first, "long", LONG),
            Logged(first, "short", b"x"),
            Logged(second, "next", b"x"),
        ]

    async def test_a_long_append_is_there_whole_or_not_at_all(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        records = [LogRecord(f"r{number}", bytes(PART_BYTES)) for number in range(6)]

        async with asyncio.TaskGroup() as group:
            appending = group.create_task(here.append(logs.seat, records, expected=0))
            seen = [len(await there.read(logs.seat))]
            while not appending.done():
                seen.append(len(await there.read(logs.seat)))
        seen.append(len(await there.read(logs.seat)))

        assert set(seen) == {0, len(records)}

    async def test_an_append_on_top_of_something_else_is_refused_naming_what_stands(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()
        first = await here.append(logs.seat, one("a"), expected=0)
        second = await here.append(logs.seat, one("b"), expected=first)

        for expected in (0, first, second + 1000):
            with pytest.raises(Superseded) as refused:
                await there.append(logs.seat, one("c"), expected=expected)
            assert (refused.value.seat, refused.value.expected) == (logs.seat, expected)
            assert refused.value.tail == Tail(second, "b")

        assert [record.id for record in await there.read(logs.seat)] == ["a", "b"]

    async def test_of_many_appends_that_expect_the_same_one_gets_through(self, logs: LogHarness) -> None:
        clients = [await logs.client() for _ in range(4)]
        expected = 0

        for records in (one("same"), one("same", LONG), one("same")):
            appends = (client.append(logs.seat, records, expected=expected) for client in clients)
            outcomes = await asyncio.gather(*appends, return_exceptions=True)
            won = [outcome for outcome in outcomes if isinstance(outcome, int)]
            assert len(won) == 1, outcomes
            assert sum(isinstance(outcome, Superseded) for outcome in outcomes) == len(clients) - 1, outcomes
            expected = (await clients[0].tail(logs.seat)).sequence

        assert len(await clients[0].read(logs.seat)) == 3

    async def test_every_append_of_many_writers_stands_on_what_its_writer_saw(self, logs: LogHarness) -> None:
        clients = [await logs.client() for _ in range(3)]

        await asyncio.gather(*(_add(client, logs.seat, f"w{number}", 4) for number, client in enumerate(clients)))

        records = await clients[0].read(logs.seat)
        before = [0, *(record.sequence for record in records[:-1])]
        assert [int(record.payload) for record in records] == before
        assert len({record.id for record in records}) == len(records) == 4 * len(clients)

    async def test_seats_do_not_touch_each_other(self, logs: LogHarness) -> None:
        log = await logs.client()
        mine = await log.append(logs.seat, one("mine"), expected=0)
        others = await log.append(logs.other, one("others"), expected=0)
        more = await log.append(logs.seat, one("more"), expected=mine)

        await log.trim(logs.seat, through=more)
        await log.purge(logs.seat)

        assert await log.read(logs.other) == [Logged(others, "others", b"x")]
        assert await log.tail(logs.other) == Tail(others, "others")
        assert await log.tail(logs.seat) == Tail(0)

    async def test_what_can_be_no_append_is_refused_before_anything_is_sent(self, logs: LogHarness) -> None:
        log = await logs.client()
        too_long = "i" * (limits.LOG_RECORD_ID_MAX_CHARS + 1)

        for records in ([], one(""), one("a b"), one("a\r\nb"), one("ä"), [*one("a"), *one(too_long)]):
            with pytest.raises(ValueError, match=logs.seat):
                await log.append(logs.seat, records, expected=0)
        with pytest.raises(PayloadTooLarge):
            await log.append(logs.seat, one("a", bytes(limits.LOG_APPEND_MAX_BYTES + 1)), expected=0)

        assert await log.tail(logs.seat) == Tail(0)

    async def test_what_can_be_no_seat_is_refused_by_every_verb(self, logs: LogHarness) -> None:
        log = await logs.client()

        for seat in ("", "a.b", "*", ">", "a b"):
            for call in (
                lambda seat=seat: log.append(seat, one("a"), expected=0),
                lambda seat=seat: log.tail(seat),
                lambda seat=seat: log.read(seat),
                lambda seat=seat: log.trim(seat, through=1),
                lambda seat=seat: log.purge(seat),
            ):
                with pytest.raises(ValueError, match="token"):
                    await call()


class FullLogs(Contract):
    """Where there is no room."""

    async def test_a_full_log_refuses_by_name_at_once_and_keeps_what_stands(self, logs: LogHarness) -> None:
        log = await logs.client()
        first = await log.append(logs.seat, one("a"), expected=0)
        await logs.fill()

        with pytest.raises(LogFull) as refused:
            await log.append(logs.seat, one("b", bytes(2 * ROOM_BYTES)), expected=first)

        assert (refused.value.seat, refused.value.at_limit) == (logs.seat, True)
        assert refused.value.sequence == (await log.tail(logs.seat)).sequence
        assert [record.id for record in await log.read(logs.seat)] == ["a"]

    async def test_a_log_takes_more_again_once_there_is_room(self, logs: LogHarness) -> None:
        log = await logs.client()
        first = await log.append(logs.seat, one("a"), expected=0)
        await logs.fill()
        with pytest.raises(LogFull) as refused:
            await log.append(logs.seat, one("b", bytes(2 * ROOM_BYTES)), expected=first)

        await logs.make_room()
        await log.append(logs.seat, one("b", bytes(2 * ROOM_BYTES)), expected=refused.value.sequence)

        assert [record.id for record in await log.read(logs.seat)] == ["a", "b"]


async def _add(log: Log, seat: str, name: str, count: int) -> None:
    """Add so many records, each saying what its writer saw on top of the log."""
    added = 0
    while added < count:
        tail = await log.tail(seat)
        try:
            await log.append(seat, one(f"{name}.{added}", str(tail.sequence).encode()), expected=tail.sequence)
        except Superseded:
            continue
        added += 1
