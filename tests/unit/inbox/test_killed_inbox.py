"""A seat whose process is killed between any two steps: its mail is worked once, whatever stood open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from crewlet.base import limits
from crewlet.events import Event
from crewlet.events.types import AgentTurnCompleted, TurnTriggerSkipped
from crewlet.inbox.taking_over import Fate
from crewlet.llm import ModelRequest, UserMessage
from crewlet.notify import Sources
from crewlet.testing.played_sources import PlayedChat, chat_message
from tests.unit.inbox.killed_inboxes import Seat, live_of
from tests.unit.inbox.wakes import wake
from tests.unit.turns.killed_turns import Killed, Process, World
from tests.unit.turns.turn_kit import CountingFence, operator_says

REPLIES = 5
STEPS_OF_TAKING_OVER = 4

pytestmark = pytest.mark.virtual_time


def opening_of(request: ModelRequest) -> str:
    first = request.messages[0]
    assert isinstance(first, UserMessage)
    return first.text


def ends_of(seat: Seat) -> list[AgentTurnCompleted]:
    """What the inbox itself told of turns that ended, each event once."""
    told = {each.id: each.data for each in seat.told}
    return [each for each in told.values() if isinstance(each, AgentTurnCompleted)]


async def steps_of_a_whole_life() -> int:
    process = Process()
    await live_of(Seat(), process)
    return process.steps


async def killed_at(step: int, seat: Seat) -> None:
    with pytest.raises(Killed):
        await live_of(seat, Process(dies_at=step))


async def killed_once_it_acted() -> Seat:
    """A seat whose process died as soon as its turn had reached outside."""
    for step in range(1, await steps_of_a_whole_life() + 1):
        seat = Seat()
        await killed_at(step, seat)
        if seat.world.comments:
            return seat
    raise AssertionError("it never acts")


@pytest.mark.slow
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
        seat = await killed_once_it_acted()
        # Four times before anything new is said.
        for _ in range(4):
            await killed_at(8, seat)
        await live_of(seat, Process())

    fates = [each["fate"] for each in logs if each["event"] == "turn_taken_over"]
    (ended,) = ends_of(seat)
    given_up = [each.data for each in seat.told if isinstance(each.data, TurnTriggerSkipped) and each.data.abandoned]
    assert Fate.GIVE_UP.name.lower() in fates
    assert (ended.failed, ended.redelivered, ended.error_kind) == (True, False, "not_resumed")
    assert {(each.trigger_id, each.turn_id) for each in given_up} == {(operator_says().id, ended.turn_id)}
    assert seat.mail == []
    assert max(seat.world.comments.values(), default=0) <= 1


@pytest.mark.parametrize(("now", "said"), [("r2", ("r1", "r2")), ("r1", (None, None)), ("", (None, None))])
async def test_a_turn_is_taken_over_aloud_where_another_document_is_in_force_than_it_began_with(
    now: str, said: tuple[str | None, str | None]
) -> None:
    with capture_logs() as logs:
        seat = Seat(World(revision="r1"))
        await killed_at(16, seat)
        seat.world.revision = now
        await live_of(seat, Process())

    (taken,) = [each for each in logs if each["event"] == "turn_taken_over"]
    assert (taken.get("revision"), taken.get("revision_now")) == said


async def test_killed_again_and_again_before_it_acted_it_ends_and_its_mail_comes_back() -> None:
    with capture_logs() as logs:
        seat = Seat()
        await killed_at(16, seat)
        for _ in range(4):
            await killed_at(8, seat)
        await live_of(seat, Process())

    fates = [each["fate"] for each in logs if each["event"] == "turn_taken_over"]
    (ended,) = ends_of(seat)
    assert Fate.LEAVE.name.lower() in fates
    assert (ended.redelivered, ended.error_kind) == (True, "not_resumed")
    assert seat.answers[-1] == (operator_says().id, "two comments are there")
    assert seat.mail == []


@pytest.mark.slow
async def test_a_turn_whose_source_is_gone_is_gone_on_with_and_acts_once() -> None:
    chat = PlayedChat()
    sources = Sources([chat])
    raw = chat_message("C9", "101", to="ceo", by="ann", text="ann asks", thread="100")
    mail = await wake(raw, "event 101", at_s=1, sources=sources)
    with capture_logs():
        for step in range(1, await steps_of_a_whole_life() + 1):
            seat = Seat(sources=sources, mail=[mail])
            await killed_at(step, seat)
            seat.sources = Sources()
            await live_of(seat, Process())

            assert seat.mail == []
            assert max(seat.world.comments.values()) == 1, f"killed at step {step}"


async def test_a_turn_that_a_person_stopped_while_nobody_ran_it_ends_and_its_mail_is_worked() -> None:
    with capture_logs():
        seat = await killed_once_it_acted()
        asked = seat.world.model_calls
        seat.stopped = "stopped by ada"
        await live_of(seat, Process())

    assert seat.mail == []
    assert seat.world.model_calls == asked
    assert seat.answers == [(operator_says().id, "")]
    (ended,) = ends_of(seat)
    assert (ended.stopped, ended.error) == (True, "stopped by ada")


async def test_an_answer_that_nobody_takes_for_long_is_handed_over_in_the_end_and_its_turn_not_run_again() -> None:
    with capture_logs():
        seat = Seat(unsettled=8 * limits.ANSWER_ATTEMPTS_MAX)
        await live_of(seat, Process())

    assert seat.answers == [(operator_says().id, "two comments are there")]
    assert [each.decision for each in seat.world.completions.values()] == ["done"]
    assert seat.world.model_calls == REPLIES
    assert len(seat.outcomes) > limits.JOURNAL_RESUMES_MAX + 1


async def test_a_turn_whose_fence_closed_under_a_lease_that_stands_goes_on_under_its_id() -> None:
    with capture_logs():
        for check in range(2, 12):
            seat = Seat(fence=CountingFence(closes_at=check))
            await live_of(seat, Process())

            assert max(seat.world.comments.values()) == 1, f"closed at check {check}"
            assert [each.decision for each in seat.world.completions.values()][-1] == "done"
            assert len({each.turn_id for each in seat.world.completions.values()}) == 1, f"closed at check {check}"


@pytest.mark.slow
async def test_a_turn_whose_end_could_not_be_written_repeats_nothing_when_its_mail_comes_back() -> None:
    with capture_logs() as logs:
        for step in range(STEPS_OF_TAKING_OVER + 1, await steps_of_a_whole_life() + 1):
            seat = Seat()
            await live_of(seat, Process(cut_at=step))

            assert seat.mail == []
            assert max(seat.world.comments.values()) == 1, f"cut at step {step}"
    assert "journal_end_unwritten" in {each["event"] for each in logs}


@pytest.mark.slow
async def test_killed_in_its_first_round_a_turn_shows_the_thread_that_it_was_begun_with_and_answers_what_waits() -> (
    None
):
    chat = PlayedChat()
    sources = Sources([chat])
    mail: list[Event] = []
    for ts, by in (("101", "ann"), ("102", "bob")):
        chat.threads.say("C9", "100", ts, by=by, text=f"{by} asks")
        raw = chat_message("C9", ts, to="ceo", by=by, text=f"{by} asks", thread="100")
        mail.append(await wake(raw, f"event {ts}", at_s=int(ts), sources=sources))
    waiting, woke = mail
    seen = 0
    with capture_logs():
        for step in range(1, await steps_of_a_whole_life() + 1):
            seat = Seat(sources=sources, mail=[woke])
            await killed_at(step, seat)
            if len(seat.world.requests) != 1:
                continue
            seen += 1
            chat.threads.is_away = True
            seat.mail.append(waiting)
            await live_of(seat, Process())
            chat.threads.is_away = False

            thread = "> ann: ann asks\n> bob: bob asks\n"
            assert all(thread in opening_of(each) for each in seat.world.requests[:2]), f"killed at step {step}"
            assert seat.mail == []
    assert seen > 0


async def test_mail_that_comes_meanwhile_waits_behind_the_turn_that_was_left() -> None:
    with capture_logs():
        seat = await killed_once_it_acted()
        seat.mail.append(replace(operator_says("and then?"), id="later"))
        await live_of(seat, Process())

    answered = [trigger for trigger, _ in seat.answers]
    assert answered == [operator_says().id, "later"]
