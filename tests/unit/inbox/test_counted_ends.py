"""A turn's recorded replies are counted before its end is on record, by whichever process ends it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryLog, MemoryLogStream, MemoryRecordStore
from crewlet.backends.memory.log import Piece
from crewlet.base import limits
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.coordination import Ledger
from crewlet.events.types import TurnChargeUncounted
from crewlet.inbox.journal_entries import Opened, Replied, decode_entry
from crewlet.inbox.journal_state import last_turn_of
from crewlet.inbox.recorded_charges import last_charges
from crewlet.queue import Ack, Nak
from crewlet.testing import VirtualClock
from crewlet.turns import Spent
from tests.unit.inbox.killed_inboxes import Seat, live_of
from tests.unit.turns.killed_turns import WHOLE, Killed, Process, World, WorldMeter, live
from tests.unit.turns.turn_kit import USAGE

pytestmark = pytest.mark.virtual_time

STEPS_OF_TAKING_OVER = 4
THIRD = 3


class WatchedStream(MemoryLogStream):
    """Keeps which replies were ever put on record, by turn and number."""

    def __init__(self) -> None:
        super().__init__(VirtualClock())
        self.replies: set[tuple[str, int]] = set()
        self._turn = ""

    def put(self, seat: str, piece: Piece, expected: int) -> int:
        sequence = super().put(seat, piece, expected)
        for record in piece.records:
            match decode_entry(record.payload):
                case Opened(turn_id=turn_id):
                    self._turn = turn_id
                case Replied(number=number):
                    self.replies.add((self._turn, number))
                case _:
                    pass
        return sequence


def replies_of(seat: Seat) -> set[tuple[str, int]]:
    assert isinstance(seat.world.log, WatchedStream)
    return seat.world.log.replies


async def steps_of_a_whole_life() -> int:
    process = Process()
    await live_of(Seat(), process)
    return process.steps


async def on_record(world: World) -> tuple[str, set[int]]:
    """The open turn's id and the numbers of its recorded replies; none where no turn is open."""
    found = [(each.sequence, decode_entry(each.payload)) for each in await MemoryLog(world.log).read("ceo")]
    turn = last_turn_of(found)
    if turn is None or turn.ended is not None:
        return "", set()
    return turn.opened.turn_id, {replied.number for replied in turn.replies.values()}


async def killed_at(step: int, seat: Seat) -> None:
    with pytest.raises(Killed):
        await live_of(seat, Process(dies_at=step))


async def recorded_by_another(seat: Seat) -> None:
    ledger = Ledger(MemoryRecordStore(seat.bucket), VirtualClock())
    await ledger.record("ceo", [seat.mail[0].id], turn_id="another", outcome="done")


async def killed_between_a_reply_and_its_charge() -> Seat:
    """A seat whose process died with a reply on record that nobody counted."""
    for step in range(1, await steps_of_a_whole_life() + 1):
        seat = Seat()
        await killed_at(step, seat)
        _, replies = await on_record(seat.world)
        if len(replies) > len(seat.world.charges):
            return seat
    raise AssertionError("every reply is counted as soon as it is on record")


@pytest.mark.slow
@pytest.mark.parametrize("why", ["a person stopped it", "another worked it"])
async def test_a_turn_that_is_ended_without_being_run_has_each_recorded_reply_counted(why: str) -> None:
    made_up_for = 0
    with capture_logs():
        for step in range(1, await steps_of_a_whole_life() + 1):
            seat = Seat()
            await killed_at(step, seat)
            turn_id, replies = await on_record(seat.world)
            made_up_for += len(replies) > len(seat.world.charges)
            if why == "a person stopped it":
                seat.stopped = "stopped by ada"
            else:
                await recorded_by_another(seat)

            await live_of(seat, Process())

            counted = {number for lane, number in seat.world.charges if lane == turn_id}
            assert counted >= replies, f"killed at step {step}: {counted} of {replies}"
    assert made_up_for


async def test_a_turn_that_was_taken_over_too_often_has_its_last_reply_counted_as_it_ends() -> None:
    with capture_logs():
        seat = await killed_between_a_reply_and_its_charge()
        turn_id, replies = await on_record(seat.world)
        for _ in range(limits.JOURNAL_RESUMES_MAX):
            await killed_at(STEPS_OF_TAKING_OVER, seat)

        await live_of(seat, Process())

    assert {number for lane, number in seat.world.charges if lane == turn_id} == replies


async def test_counters_that_do_not_answer_are_asked_again_before_the_turn_ends() -> None:
    with capture_logs() as said:
        seat = await killed_between_a_reply_and_its_charge()
        turn_id, replies = await on_record(seat.world)
        seat.stopped, seat.uncounted = "stopped by ada", 3

        await live_of(seat, Process())

    assert {number for lane, number in seat.world.charges if lane == turn_id} == replies
    assert [line["event"] for line in said].count("turn_charge_waits") == 3
    assert not [event for event in seat.told if isinstance(event.data, TurnChargeUncounted)]


async def test_a_charge_that_cannot_be_made_within_its_bound_is_said_and_ends_the_turn_all_the_same() -> None:
    with capture_logs() as said:
        seat = await killed_between_a_reply_and_its_charge()
        turn_id, replies = await on_record(seat.world)
        seat.stopped, seat.uncounted = "stopped by ada", 1000

        await live_of(seat, Process())

    told = [event.data for event in seat.told if isinstance(event.data, TurnChargeUncounted)]
    (uncounted,) = told
    assert (uncounted.turn_id, uncounted.lane, uncounted.tokens) == (turn_id, turn_id, USAGE.total)
    assert uncounted.number == max(replies)
    assert "do not answer" in uncounted.error
    assert "turn_charge_uncounted" in {line["event"] for line in said}
    assert await on_record(seat.world) == ("", set())


class DeafOnce(WorldMeter):
    """Nobody answers for the budgets when a first turn's third reply is counted."""

    deaf: ClassVar[list[str]] = []

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        if spent.number == THIRD and not self.deaf:
            self.deaf.append(spent.lane)
            raise Unavailable("the counters do not answer")
        await super().charge(spent, check)


async def test_a_turn_that_broke_over_the_counters_has_no_end_before_its_reply_is_counted() -> None:
    DeafOnce.deaf.clear()
    seat = Seat(World(log=WatchedStream(), meter=DeafOnce), uncounted=2)
    with capture_logs():
        await live_of(seat, Process())

    (broke,) = DeafOnce.deaf
    assert isinstance(seat.outcomes[-1], Ack)
    assert (broke, THIRD) in seat.world.charges
    assert seat.world.charges.keys() == replies_of(seat)


@pytest.mark.slow
async def test_a_reply_that_is_on_record_unheard_is_counted_before_its_turn_ends() -> None:
    broke = 0
    with capture_logs():
        for step in range(1, await steps_of_a_whole_life() + 1):
            seat = Seat(World(log=WatchedStream()))
            with suppress(CrewletError):
                await live_of(seat, Process(unheard_at=step))

            assert seat.world.charges.keys() == replies_of(seat), f"unheard at step {step}"
            broke += Nak in map(type, seat.outcomes)
    assert broke


@pytest.mark.slow
async def test_the_last_charges_on_record_are_known_by_the_very_lanes_that_the_turn_charged() -> None:
    world = World()
    steps = Process()
    await live(world, steps, scene=WHOLE)
    lanes: set[str] = set()
    with capture_logs():
        for step in range(1, steps.steps + 1):
            killed = World()
            with pytest.raises(Killed):
                await live(killed, Process(dies_at=step), scene=WHOLE)
            found = [(each.sequence, decode_entry(each.payload)) for each in await MemoryLog(killed.log).read("ceo")]
            if (turn := last_turn_of(found)) is not None and turn.ended is None:
                charges = last_charges(turn.opened.turn_id, turn.replies.values())
                lanes |= {lane.removeprefix(turn.opened.turn_id) for lane in charges}

    (turn_id,) = {lane.partition("/")[0] for lane, _ in world.charges}
    assert lanes == {lane.removeprefix(turn_id) for lane, _ in world.charges} == {"", "/x", "/y", "/z"}
