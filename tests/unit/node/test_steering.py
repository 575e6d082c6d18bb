"""A person's note finds the turn that it is for, on whichever node that runs."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.node.steering import Steering, SteerOutcome
from crewlet.queue import QueueConfig
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time


class Fleet:
    """Nodes on one broker; ``alive`` is how many of them each believes in."""

    def __init__(self) -> None:
        self.alive = 2
        self._broker = MemoryBroker(VirtualClock())
        self._made = 0

    async def node(self) -> Steering:
        self._made += 1
        queue = MemoryQueue(self._broker, node=f"node-{self._made}", config=QueueConfig())
        steering = Steering(queue, lambda: self.alive - 1, VirtualClock(), SeededIds(self._made))
        # For as long as the test runs.
        await queue.serve("steer.note", steering.answer)
        return steering


@pytest.fixture
async def fleet() -> Fleet:
    return Fleet()


async def test_a_note_is_read_where_the_turn_runs(fleet: Fleet) -> None:
    here, there = await fleet.node(), await fleet.node()
    box = there.open("turn-1")

    steered = await here.steer("turn-1", "leave the invoice alone", by="operator:ada")

    (note,) = box.take()
    assert steered.outcome is SteerOutcome.ACCEPTED
    assert (note.text, note.by, note.note_id) == ("leave the invoice alone", "operator:ada", steered.note_id)
    assert note.sent_at is not None


async def test_a_turn_that_ended_lately_is_closed_and_one_that_nobody_knows_is_none(fleet: Fleet) -> None:
    here, there = await fleet.node(), await fleet.node()
    there.close("turn-1", there.open("turn-1"))

    assert (await here.steer("turn-1", "hm", by="ada")).outcome is SteerOutcome.CLOSED
    assert (await here.steer("turn-2", "hm", by="ada")).outcome is SteerOutcome.NO_SUCH_TURN


async def test_a_turn_that_moved_takes_its_notes_where_it_runs_now(fleet: Fleet) -> None:
    here, there = await fleet.node(), await fleet.node()
    here.close("turn-1", here.open("turn-1"))
    box = there.open("turn-1")
    third = await fleet.node()
    fleet.alive = 3

    steered = await third.steer("turn-1", "hm", by="ada")

    assert steered.outcome is SteerOutcome.ACCEPTED
    assert len(box.take()) == 1


async def test_a_turn_that_is_gone_on_with_where_its_first_run_still_ends_takes_its_notes(fleet: Fleet) -> None:
    here = await fleet.node()
    first = here.open("turn-1")
    again = here.open("turn-1")

    here.close("turn-1", first)
    steered = await here.steer("turn-1", "hm", by="ada")
    here.close("turn-1", again)

    assert steered.outcome is SteerOutcome.ACCEPTED
    assert (await here.steer("turn-1", "hm", by="ada")).outcome is SteerOutcome.CLOSED


async def test_where_a_node_is_silent_nobody_says_that_there_is_no_such_turn(fleet: Fleet) -> None:
    here = await fleet.node()
    await fleet.node()
    fleet.alive = 3

    with pytest.raises(Unavailable):
        await here.steer("turn-1", "hm", by="ada")


async def test_five_notes_wait_and_a_sixth_is_refused(fleet: Fleet) -> None:
    here = await fleet.node()
    box = here.open("turn-1")

    outcomes = [(await here.steer("turn-1", str(n), by="ada")).outcome for n in range(6)]

    assert outcomes == [SteerOutcome.ACCEPTED] * 5 + [SteerOutcome.FULL]
    assert [note.text for note in box.take()] == ["0", "1", "2", "3", "4"]


async def test_a_note_sent_twice_under_one_id_is_read_once(fleet: Fleet) -> None:
    here = await fleet.node()
    box = here.open("turn-1")

    first = await here.steer("turn-1", "hm", by="ada", note_id="mine")
    box.take()
    again = await here.steer("turn-1", "hm", by="ada", note_id="mine")

    assert (first.outcome, again.outcome) == (SteerOutcome.ACCEPTED, SteerOutcome.ACCEPTED)
    assert box.take() == []


async def test_the_last_256_ended_turns_are_remembered(fleet: Fleet) -> None:
    here = await fleet.node()
    for n in range(limits.STEER_ENDED_TURNS_KEPT + 1):
        here.close(f"turn-{n}", here.open(f"turn-{n}"))
    fleet.alive = 1

    assert (await here.steer("turn-0", "hm", by="ada")).outcome is SteerOutcome.NO_SUCH_TURN
    assert (await here.steer("turn-1", "hm", by="ada")).outcome is SteerOutcome.CLOSED


async def test_what_is_no_note_is_answered_as_by_a_node_that_runs_no_such_turn(fleet: Fleet) -> None:
    here = await fleet.node()

    assert await here.answer(b"not a note") == b""
