"""A seat whose process is killed between any two steps: its mail is worked once, whatever stood open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from crewlet.inbox.taking_over import Fate
from tests.unit.inbox.killed_inboxes import Seat, live_of
from tests.unit.turns.killed_turns import Killed, Process
from tests.unit.turns.turn_kit import operator_says

pytestmark = pytest.mark.virtual_time


async def steps_of_a_whole_life() -> int:
    process = Process()
    await live_of(Seat(), process)
    return process.steps


async def killed_at(step: int, seat: Seat) -> None:
    with pytest.raises(Killed):
        await live_of(seat, Process(dies_at=step))


async def test_killed_anywhere_the_mail_is_answered_under_one_turn_and_no_comment_is_made_twice() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_life() + 1):
            seat = Seat()
            await killed_at(step, seat)
            await live_of(seat, Process())

            (completed,) = seat.world.completions.values()
            assert seat.mail == []
            assert completed.decision == "done", f"killed at step {step}"
            assert max(seat.world.comments.values()) == 1, f"killed at step {step}"
            assert {text for _, text in seat.answers} == {"two comments are there"}, f"killed at step {step}"


async def test_killed_again_and_again_without_a_new_reply_it_ends_and_says_that_it_acted() -> None:
    with capture_logs() as logs:
        seat = Seat()
        # Half-way through the second reply's calls, and then four times before anything new is said.
        await killed_at(30, seat)
        for _ in range(4):
            await killed_at(8, seat)
        await live_of(seat, Process())

    fates = [each["fate"] for each in logs if each["event"] == "turn_taken_over"]
    assert fates[-1] in {Fate.GIVE_UP.name.lower(), Fate.LEAVE.name.lower()}
    assert seat.mail == []
    assert max(seat.world.comments.values(), default=0) <= 1


async def test_a_turn_that_a_person_stopped_while_nobody_ran_it_ends_and_its_mail_is_worked() -> None:
    with capture_logs():
        seat = Seat()
        await killed_at(30, seat)
        asked = seat.world.model_calls
        seat.stopped = "stopped by ada"
        await live_of(seat, Process())

    assert seat.mail == []
    assert seat.world.model_calls == asked
    assert seat.answers == [(operator_says().id, "")]


async def test_mail_that_comes_meanwhile_waits_behind_the_turn_that_was_left() -> None:
    with capture_logs():
        seat = Seat()
        await killed_at(30, seat)
        seat.mail.append(replace(operator_says("and then?"), id="later"))
        await live_of(seat, Process())

    answered = [trigger for trigger, _ in seat.answers]
    assert answered == [operator_says().id, "later"]
