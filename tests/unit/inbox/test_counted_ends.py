"""A turn's recorded replies are counted before its end is on record, by whichever process ends it."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryLog, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import Ledger
from crewlet.events.types import TurnChargeUncounted
from crewlet.inbox.journal_entries import decode_entry
from crewlet.inbox.journal_state import last_turn_of
from crewlet.inbox.recorded_charges import last_charges
from crewlet.testing import VirtualClock
from tests.unit.inbox.killed_inboxes import Seat, live_of
from tests.unit.turns.killed_turns import WHOLE, Killed, Process, World, live
from tests.unit.turns.turn_kit import USAGE

pytestmark = pytest.mark.virtual_time

STEPS_OF_TAKING_OVER = 4


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
