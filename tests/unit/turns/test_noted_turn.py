"""What somebody tells a turn outlives the process that took it."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from crewlet.base.errors import Unavailable
from crewlet.base.ids import TurnId
from crewlet.inbox import Note, Opening
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.llm import UserMessage
from crewlet.turns import NoteBox
from tests.unit.turns.killed_turns import NOTE, Killed, Process, World, born, journal_of, live
from tests.unit.turns.turn_kit import trigger_from

pytestmark = pytest.mark.virtual_time

SENT_AT = 2


async def steps_of_a_steered_turn() -> int:
    process = Process()
    world = World(note_at=SENT_AT)
    await live(world, process)
    assert world.accepted
    return process.steps


def showing(world: World) -> list[int]:
    """How often each request to a model holds the note."""
    return [
        sum(isinstance(each, UserMessage) and NOTE.text in each.text for each in request.messages)
        for request in world.requests
    ]


@pytest.mark.slow
async def test_killed_anywhere_an_accepted_note_is_shown_and_its_end_is_told_once() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_steered_turn() + 1):
            world = World(note_at=SENT_AT)
            with pytest.raises(Killed):
                await live(world, Process(dies_at=step))
            world.note_at = 0
            await live(world, Process())

            if world.accepted:
                assert [each.outcome for each in world.steers.values()] == ["delivered"], f"killed at step {step}"
                assert max(showing(world)) == 1, f"killed at step {step}"
                assert showing(world)[-1] == 1, f"killed at step {step}"


@pytest.mark.slow
async def test_killed_between_the_reading_and_the_reply_the_next_process_shows_it_in_the_same_round() -> None:
    shown_twice = 0
    with capture_logs():
        for step in range(1, await steps_of_a_steered_turn() + 1):
            world = World(note_at=SENT_AT)
            with pytest.raises(Killed):
                await live(world, Process(dies_at=step))
            asked, world.note_at = len(world.requests), 0
            await live(world, Process())

            if asked == SENT_AT + 1 and len(world.requests) > asked and showing(world)[asked - 1]:
                # The round that showed it had no reply on record, or that reply did not get there.
                shown_twice += world.requests[asked].messages == world.requests[asked - 1].messages
    assert shown_twice


async def test_a_note_that_comes_before_its_turn_is_on_record_is_taken_once_it_is() -> None:
    world = World()
    clock, _ = born(world)
    journal = journal_of(world, Process(), clock)
    await journal.take_over()
    turn = JournalledTurn(journal, trigger_from(), TurnId("turn-1"))

    taking = asyncio.create_task(NoteBox(turn.noted).accept(NOTE))
    await asyncio.sleep(1.0)
    waited = not taking.done()
    await turn.open(Opening())

    assert (waited, await taking) == (True, True)
    found = (await journal.take_over()).turn
    assert found is not None
    assert found.notes_left == (NOTE,)


async def test_a_note_that_comes_as_its_turn_ends_is_not_put_among_the_next_ones_entries() -> None:
    world = World()
    clock, _ = born(world)
    journal = journal_of(world, Process(), clock)
    await journal.take_over()
    turn = JournalledTurn(journal, trigger_from(), TurnId("turn-1"))
    await turn.open(Opening())

    await turn.end(outcome="ack", decision="done", ids=())

    with pytest.raises(Unavailable):
        await turn.noted(NOTE)


async def test_a_note_is_taken_only_once_it_is_on_record() -> None:
    async def no_journal(_: Note) -> bool:
        raise Unavailable("the log does not answer")

    box = NoteBox(no_journal)

    with pytest.raises(Unavailable):
        await box.accept(NOTE)
    assert box.take() == []


async def test_a_note_that_came_as_its_turn_ended_is_not_said_to_be_taken() -> None:
    async def ends_meanwhile(_: Note) -> bool:
        box.close()
        return True

    box = NoteBox(ends_meanwhile)

    with pytest.raises(Unavailable):
        await box.accept(NOTE)


async def test_a_turn_that_goes_on_elsewhere_says_nothing_of_the_notes_that_it_takes_along() -> None:
    async def kept(_: Note) -> bool:
        return True

    box = NoteBox(kept)
    await box.accept(NOTE)
    box.post(Note(note_id="note-2", text="not on record", by="ada"))

    assert [note.note_id for note in box.close(goes_on=True)] == ["note-2"]
