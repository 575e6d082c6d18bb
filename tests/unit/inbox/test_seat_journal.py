"""One seat's journal: who may write it, and what the next holder reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryLog, MemoryLogStream
from crewlet.backends.memory.log import Piece
from crewlet.base import limits
from crewlet.base.errors import Fenced, PayloadTooLarge, Unavailable
from crewlet.base.ids import TurnId
from crewlet.inbox import CallAt, Opening
from crewlet.inbox.journal_entries import Ended, Opened, Replied, UnreadableEntry, WireReply, decode_entry
from crewlet.inbox.journal_messages import wire_message
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.seat_journal import SeatJournal
from crewlet.llm import AssistantMessage
from crewlet.queue import LogFull, Logged, LogRecord
from crewlet.testing import VirtualClock
from crewlet.tools import ToolResult
from tests.unit.turns.turn_kit import trigger_from

pytestmark = pytest.mark.virtual_time

AT = datetime(2030, 1, 1, tzinfo=UTC)
LATER = b'{"kind": "later", "at": "2030-01-01T00:00:00Z"}'


class SlowLog(MemoryLog):
    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        await asyncio.sleep(1.0)
        return await super().append(seat, records, expected=expected)


class Seat:
    """Where one seat is held: the epoch that its lease stands under. ``unknown``: the store does not say."""

    def __init__(self) -> None:
        self.stream = MemoryLogStream(VirtualClock())
        self.epoch = 0
        self.unknown = False

    def journal(self, writer: str, *, slow: bool = False) -> SeatJournal:
        """The journal of a new tenure; ``slow``: an append takes a second."""
        self.epoch += 1
        epoch = self.epoch

        async def standing() -> bool:
            if self.unknown:
                raise Unavailable("the store does not answer")
            return self.epoch == epoch

        log = SlowLog(self.stream) if slow else MemoryLog(self.stream)
        return SeatJournal("ceo", log, epoch=epoch, writer=writer, standing=standing, clock=VirtualClock())


def opened(turn_id: str = "turn-1") -> Opened:
    return Opened(at=AT, turn_id=turn_id)


def turns_on_record(kept: Sequence[Logged]) -> list[str]:
    entries = (decode_entry(each.payload) for each in kept)
    return [entry.turn_id for entry in entries if isinstance(entry, Opened)]


def ended(*ids: str, outcome: str = "ack") -> Ended:
    return Ended(at=AT, turn_id="turn-1", outcome=outcome, ids=ids)


async def test_once_taken_over_a_predecessor_writes_nothing_more() -> None:
    seat = Seat()
    first = seat.journal("a")
    await first.take_over()
    await first.write(opened())

    found = await seat.journal("b").take_over()

    assert found.turn is not None
    assert found.turn.opened.turn_id == "turn-1"
    with pytest.raises(Fenced):
        await first.write(ended("x"))


async def test_a_predecessor_that_wrote_nothing_yet_is_refused_too() -> None:
    seat = Seat()
    first = seat.journal("a")
    await first.take_over()
    await seat.journal("b").take_over()

    with pytest.raises(Fenced):
        await first.write(opened())


async def test_a_tenure_that_is_over_takes_nothing_over_from_its_successor() -> None:
    seat = Seat()
    first = seat.journal("a")
    await first.take_over()
    successor = seat.journal("b")
    await successor.take_over()

    with pytest.raises(Fenced):
        await first.take_over()
    await successor.write(opened())


async def test_of_two_that_take_over_at_once_the_one_that_holds_the_seat_writes_on() -> None:
    seat = Seat()
    earlier, holder = seat.journal("a", slow=True), seat.journal("b", slow=True)

    outcomes = await asyncio.gather(earlier.take_over(), holder.take_over(), return_exceptions=True)

    assert isinstance(outcomes[0], Fenced)
    await holder.write(opened())


async def test_a_long_write_of_a_successor_that_is_under_way_lets_no_predecessor_write_on_top() -> None:
    seat = Seat()
    first = seat.journal("a")
    await first.take_over()
    seat.epoch += 1
    seat.stream.keep("ceo", Piece(write=99, number=1, count=2, size_bytes=1))

    with pytest.raises(Fenced):
        await first.write(opened())


async def test_a_refused_write_whose_lease_cannot_be_read_is_unknown_and_not_fenced() -> None:
    seat = Seat()
    first = seat.journal("a")
    await first.take_over()
    await seat.journal("b").take_over()
    seat.unknown = True

    with pytest.raises(Unavailable):
        await first.write(opened())


async def test_a_strangers_entry_under_a_lease_that_stands_has_to_be_taken_over_first() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    log = MemoryLog(seat.stream)
    await log.append("ceo", [LogRecord("stranger.1", b'{"kind": "opened"}')], expected=(await log.tail("ceo")).sequence)

    with pytest.raises(Unavailable, match="taken over first"):
        await ours.write(opened())

    assert not ours.is_taken_over


async def test_a_log_that_was_lost_is_begun_anew() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    await ours.write(opened())
    seat.stream.lose()

    with capture_logs() as logs:
        await ours.write(ended("x"))

    found = await seat.journal("b").take_over()
    assert [each["event"] for each in logs] == ["journal_moved"]
    assert found.turn is not None
    assert found.turn.ids == ("x",)


async def test_entries_that_come_together_are_all_on_record_in_their_order() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()

    await asyncio.gather(*(ours.write(opened(f"turn-{n}")) for n in range(20)))

    turns = turns_on_record(await MemoryLog(seat.stream).read("ceo"))
    assert turns == [f"turn-{n}" for n in range(20)]


async def test_a_write_that_was_cut_short_is_no_stranger_to_the_next_one() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    writing = asyncio.create_task(ours.write(opened()))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)

    await ours.write(ended("x"))

    assert (await seat.journal("b").take_over()).unreadable == ""


async def test_a_writer_that_is_called_off_costs_those_that_wrote_with_it_nothing() -> None:
    seat = Seat()
    ours = seat.journal("a", slow=True)
    await ours.take_over()
    first = asyncio.create_task(ours.write(opened("turn-1")))
    others = [asyncio.create_task(ours.write(opened(f"turn-{n}"))) for n in (2, 3, 4)]
    await asyncio.sleep(1.5)
    # The first is written, the second leads the batch of the rest.
    others[0].cancel()

    outcomes = await asyncio.gather(first, *others, return_exceptions=True)

    assert [type(each) for each in outcomes] == [int, asyncio.CancelledError, int, int]
    assert turns_on_record(await MemoryLog(seat.stream).read("ceo"))[-2:] == ["turn-3", "turn-4"]


async def test_an_entry_whose_writer_was_called_off_before_it_was_sent_turns_up_nowhere() -> None:
    seat = Seat()
    ours = seat.journal("a", slow=True)
    await ours.take_over()
    first = asyncio.create_task(ours.write(opened("turn-1")))
    await asyncio.sleep(0.5)
    second = asyncio.create_task(ours.write(opened("turn-2")))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)

    await ours.write(opened("turn-3"))

    assert turns_on_record(await MemoryLog(seat.stream).read("ceo")) == ["turn-1", "turn-3"]


async def test_an_entry_that_no_append_can_hold_costs_those_beside_it_nothing() -> None:
    seat = Seat()
    ours = seat.journal("a", slow=True)
    await ours.take_over()
    texts = ("one", "x" * limits.LOG_APPEND_MAX_BYTES, "three")

    outcomes = await asyncio.gather(*(ours.write(opened(text)) for text in ("first", *texts)), return_exceptions=True)

    assert [type(each) for each in outcomes] == [int, int, PayloadTooLarge, int]


async def test_a_write_fails_as_unknown_while_the_broker_is_away_and_the_next_one_gets_through() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    seat.stream.cut = True
    with pytest.raises(Unavailable):
        await ours.write(opened("turn-1"))
    seat.stream.cut = False

    await ours.write(opened("turn-2"))

    found = await seat.journal("b").take_over()
    assert found.turn is not None
    assert found.turn.opened.turn_id == "turn-2"


async def test_a_full_log_makes_room_for_a_take_over_out_of_what_is_over() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    await ours.write(opened())
    await ours.write(opened("x" * 10_000))
    await ours.end(ended("x"))
    seat.stream.max_bytes = seat.stream.size_bytes

    found = await seat.journal("b").take_over()

    assert found.turn is not None
    assert found.turn.ids == ("x",)
    assert seat.stream.size_bytes < 10_000


async def test_a_full_log_with_nothing_but_a_turn_to_go_on_with_refuses_the_take_over_and_keeps_the_turn() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    await ours.write(opened())
    await ours.trim(seat.stream.last("ceo"))
    full = seat.stream.max_bytes
    seat.stream.max_bytes = seat.stream.size_bytes
    with pytest.raises(LogFull):
        await seat.journal("b").take_over()
    seat.stream.max_bytes = full

    found = await seat.journal("c").take_over()

    assert found.turn is not None
    assert found.turn.opened == opened()


async def test_a_turn_that_finds_no_room_for_its_end_leaves_room_behind() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    turn = JournalledTurn(ours, trigger_from(), TurnId("turn-1"))
    await turn.open(Opening(prompts={"execute": "x" * 10_000}))
    await turn.came_out(CallAt("execute/1", 1, 0), ToolResult("done"))
    seat.stream.max_bytes = seat.stream.size_bytes
    with pytest.raises(LogFull):
        await turn.end(outcome="ack", decision="done", ids=("x",))

    await turn.forget()

    assert seat.stream.size_bytes < 1_000
    await ours.write(opened("turn-2"))


async def test_trimmed_after_an_end_a_journal_keeps_the_end_alone() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()
    await ours.write(opened())

    await ours.trim(await ours.end(ended("x", "y")))

    (kept,) = await MemoryLog(seat.stream).read("ceo")
    assert decode_entry(kept.payload) == ended("x", "y")


async def test_the_ids_of_an_acknowledged_end_count_as_worked_and_no_others() -> None:
    seat = Seat()
    ours = seat.journal("a")
    await ours.take_over()

    await ours.end(ended("x"))
    worked = ours.worked(["x", "y"])
    await ours.end(ended("y", outcome="nak"))

    assert worked == {"x"}
    assert ours.worked(["x", "y"]) == {"x"}


async def test_a_journal_that_cannot_be_read_is_said_and_does_not_keep_the_seat_from_working() -> None:
    seat = Seat()
    log = MemoryLog(seat.stream)
    await log.append("ceo", [LogRecord("old.1", b"no entry at all")], expected=0)

    with capture_logs() as logs:
        ours = seat.journal("a")
        found = await ours.take_over()
    await ours.write(opened())

    assert found.turn is None
    assert found.unreadable
    assert [each["event"] for each in logs] == ["journal_unreadable"]


async def test_what_could_not_be_read_hides_no_later_turn() -> None:
    seat = Seat()
    log = MemoryLog(seat.stream)
    await log.append("ceo", [LogRecord("old.1", b"no entry at all")], expected=0)
    with capture_logs():
        ours = seat.journal("a")
        await ours.take_over()
    await ours.write(opened("turn-2"))

    found = await seat.journal("b").take_over()

    assert found.unreadable == ""
    assert found.turn is not None
    assert found.turn.opened.turn_id == "turn-2"


async def test_a_turn_with_a_reply_that_this_build_cannot_give_back_is_unreadable_and_not_half_run() -> None:
    seat = Seat()
    first = seat.journal("a")
    await first.take_over()
    reply = WireReply(message=wire_message(AssistantMessage(text="hm")), stop_reason="a reason of tomorrow")
    await first.write(opened())
    await first.write(Replied(at=AT, phase="execute/1", round_num=1, number=1, reply=reply))

    with capture_logs():
        found = await seat.journal("b").take_over()

    assert found.turn is None
    assert "a reason of tomorrow" in found.unreadable


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b'{"kind": "later", "at": "2030-01-01T00:00:00Z"}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_entry_of_this_build_is_said_to_be_unreadable(raw: bytes) -> None:
    with pytest.raises(UnreadableEntry):
        decode_entry(raw)


def test_a_field_that_a_later_build_adds_to_an_entry_is_no_obstacle() -> None:
    entry = decode_entry(b'{"kind":"opened","at":"2030-01-01T00:00:00Z","turn_id":"t","mood":"good"}')

    assert isinstance(entry, Opened)
    assert entry.turn_id == "t"
