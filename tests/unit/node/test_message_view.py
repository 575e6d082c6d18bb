"""How a message stands: waiting, working, or one of three ends, whatever happened on the way."""

from __future__ import annotations

import pytest

from crewlet.base.trace import Trace
from crewlet.coordination import ChannelStatus
from crewlet.events import new_event
from crewlet.events.types import AgentTurnCompleted, AgentTurnStarted, OrgStarted, TriggerSummary
from crewlet.node.message_view import asks_in, message_view, turn_views
from tests.unit.node.chains import MESSAGE, START, WAKE, Chain, answer_of, request_of


@pytest.fixture
def chain() -> Chain:
    return Chain()


def asked_and_answered(chain: Chain) -> None:
    """The ceo asked the cto, who answered; the answer waits in the ceo's inbox."""
    chain.asks_and_waits("ceo", WAKE, "c1", "cto")
    chain.runs("cto", request_of("c1"), "SQLite")
    chain.closes("c1")


def test_a_message_that_nobody_took_up_yet_waits(chain: Chain) -> None:
    view = chain.view()

    assert (view.id, view.handle, view.state, view.turns) == (MESSAGE, "ceo", "waiting", ())


def test_a_message_whose_turn_runs_is_worked_on(chain: Chain) -> None:
    chain.begins("ceo", WAKE)

    assert chain.view().state == "working"


def test_the_turn_of_a_message_holds_its_answer(chain: Chain) -> None:
    chain.runs("ceo", WAKE, "A notes board")

    view = chain.view()

    assert (view.state, view.answer, view.reason) == ("answered", "A notes board", "")


def test_a_failed_turn_is_the_end_and_says_why(chain: Chain) -> None:
    chain.ends(chain.begins("ceo", WAKE), "half a plan", failed=True, error="sent back three times")

    view = chain.view()

    assert (view.state, view.answer, view.reason) == ("failed", "half a plan", "sent back three times")


def test_a_seat_that_decided_to_do_nothing_skipped_its_message(chain: Chain) -> None:
    chain.ends(chain.begins("ceo", WAKE), "nothing to do", decision="skipped")

    view = chain.view()

    assert (view.state, view.answer) == ("skipped", "nothing to do")


def test_a_turn_that_a_person_stopped_is_no_answer(chain: Chain) -> None:
    chain.ends(chain.begins("ceo", WAKE), decision="stopped")

    view = chain.view()

    assert view.state == "failed"
    assert "stopped" in view.reason


def test_a_turn_that_lost_its_seat_on_the_last_delivery_is_no_answer(chain: Chain) -> None:
    chain.ends(chain.begins("ceo", WAKE), decision="", error="the seat moved")

    view = chain.view()

    assert (view.state, view.reason) == ("failed", "the seat moved")


def test_a_message_that_reached_nobody_is_skipped_with_the_reason(chain: Chain) -> None:
    chain.refused("no seat matches the recipient")

    view = chain.view()

    assert (view.state, view.reason) == ("skipped", "no seat matches the recipient")


def test_another_delivery_that_reached_nobody_changes_nothing(chain: Chain) -> None:
    chain.refused("no seat matches the recipient", source_event_id="m-2")

    assert chain.view().state == "waiting"


def test_a_broken_turn_whose_trigger_comes_back_is_no_end(chain: Chain) -> None:
    chain.ends(chain.begins("ceo", WAKE), failed=True, redelivered=True, error="no model answered")

    view = chain.view()

    assert (view.state, view.reason, view.turns[0].state) == ("working", "no model answered", "redelivered")


def test_the_run_that_came_back_answers(chain: Chain) -> None:
    chain.ends(chain.begins("ceo", WAKE), failed=True, redelivered=True, error="no model answered")
    chain.runs("ceo", WAKE, "A notes board")

    view = chain.view()

    assert (view.state, view.answer, view.reason) == ("answered", "A notes board", "")


def test_a_killed_run_never_holds_up_the_one_that_took_its_place(chain: Chain) -> None:
    chain.begins("ceo", WAKE)
    chain.runs("ceo", WAKE, "A notes board")

    view = chain.view()

    assert (view.state, [turn.state for turn in view.turns]) == ("answered", ["running", "done"])


def test_a_trigger_that_was_given_up_is_a_failure_with_its_reason(chain: Chain) -> None:
    chain.ends(chain.begins("ceo", WAKE), failed=True, redelivered=True, error="no model answered")
    chain.gives_up("ceo", WAKE, "its deliveries are spent")

    view = chain.view()

    assert (view.state, view.reason) == ("failed", "its deliveries are spent")


def test_a_trigger_that_was_worked_already_keeps_the_answer_it_had(chain: Chain) -> None:
    chain.runs("ceo", WAKE, "A notes board")
    chain.gives_up("ceo", WAKE, "worked already", abandoned=False)

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board")


def test_an_answer_stands_whatever_a_later_run_of_the_same_work_meets(chain: Chain) -> None:
    """Killed between its end and the ledger, a turn runs again: its answer may have been read by then."""
    chain.runs("ceo", WAKE, "A notes board")
    chain.ends(chain.begins("ceo", WAKE), failed=True, error="no model answered")

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board")


def test_a_process_that_slept_through_the_end_of_its_turn_takes_no_answer_back(chain: Chain) -> None:
    """Its successor goes on with the same turn and ends it; then it wakes, and tells that it lost the seat."""
    turn_id = chain.runs("ceo", WAKE, "A notes board")
    chain.ends(turn_id, failed=True, redelivered=True, error="the seat is held elsewhere")
    chain.gives_up("ceo", WAKE, "worked already", abandoned=False)

    view = chain.view()

    assert (view.state, view.answer, [turn.state for turn in view.turns]) == ("answered", "A notes board", ["done"])


@pytest.mark.parametrize("status", [ChannelStatus.OPEN, ChannelStatus.ANSWERED])
def test_an_ask_that_is_not_closed_keeps_the_message_open(chain: Chain, status: ChannelStatus) -> None:
    chain.asks_and_waits("ceo", WAKE, "c1", "cto")
    chain.runs("cto", request_of("c1"), "SQLite")
    chain.runs("ceo", answer_of("c1"), "too early")
    chain.stands("c1", status)

    assert chain.view().state == "working"


def test_an_answered_ask_keeps_the_message_open_until_its_answer_was_worked(chain: Chain) -> None:
    asked_and_answered(chain)

    view = chain.view()

    assert (view.state, [(ask.channel_id, ask.status) for ask in view.asks]) == ("working", [("c1", "closed")])


def test_the_turn_that_an_answer_woke_holds_the_answer(chain: Chain) -> None:
    asked_and_answered(chain)
    chain.runs("ceo", answer_of("c1"), "A notes board on SQLite")

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board on SQLite")


def test_an_answer_that_was_given_up_is_a_failure_and_not_what_was_said_before_it(chain: Chain) -> None:
    asked_and_answered(chain)
    chain.gives_up("ceo", answer_of("c1"), "its deliveries are spent")

    view = chain.view()

    assert (view.state, view.reason) == ("failed", "its deliveries are spent")


def test_a_colleague_whose_turn_was_given_up_fails_nobody_else(chain: Chain) -> None:
    """Whoever asked is answered all the same, and decides what that means."""
    chain.asks_and_waits("ceo", WAKE, "c1", "cto")
    chain.ends(chain.begins("cto", request_of("c1")), failed=True, error="no model answered")
    chain.gives_up("cto", request_of("c1"), "its deliveries are spent")
    chain.closes("c1")
    chain.runs("ceo", answer_of("c1"), "Ask me again tomorrow")

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "Ask me again tomorrow")


def test_asks_within_asks_come_back_to_the_seat_that_was_written_to(chain: Chain) -> None:
    chain.asks_and_waits("ceo", WAKE, "c1", "cto")
    chain.asks_and_waits("cto", request_of("c1"), "c2", "engineer")
    chain.runs("engineer", request_of("c2"), "two days")
    chain.closes("c2")
    half_way = chain.view()
    chain.runs("cto", answer_of("c2"), "a week")
    chain.closes("c1")
    chain.runs("ceo", answer_of("c1"), "next month")

    view = chain.view()

    assert half_way.state == "working"
    assert (view.state, view.answer) == ("answered", "next month")


def test_a_seat_asked_in_its_own_chain_does_not_answer_the_message_with_that(chain: Chain) -> None:
    """The cto asks back. What the ceo tells the cto is no answer to the operator, whenever the clock says it was."""
    chain.asks_and_waits("ceo", WAKE, "c1", "cto")
    chain.asks_and_waits("cto", request_of("c1"), "c2", "ceo")
    chain.step_s = 3600
    chain.runs("ceo", request_of("c2"), "at most ten euros")
    chain.step_s = -3600
    chain.closes("c2")
    chain.runs("cto", answer_of("c2"), "SQLite")
    chain.closes("c1")
    chain.runs("ceo", answer_of("c1"), "A notes board")

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board")


@pytest.mark.parametrize("step_s", [0.0, -1.0])
def test_a_clock_that_stands_or_goes_back_finds_the_same_answer(step_s: float) -> None:
    chain = Chain(step_s=step_s)
    asked_and_answered(chain)
    chain.runs("ceo", answer_of("c1"), "A notes board on SQLite")

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board on SQLite")


def test_a_run_of_the_asking_turn_after_its_answer_was_worked_is_not_the_answer(chain: Chain) -> None:
    """Redelivered late, it finds its ask closed and says once more that it has asked."""
    asked_and_answered(chain)
    chain.runs("ceo", answer_of("c1"), "A notes board on SQLite")
    again = chain.begins("ceo", WAKE)
    chain.ends(again, "I have asked cto", asks=("c1",))

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board on SQLite")


def test_an_ask_of_a_killed_run_that_nobody_repeats_holds_nothing_up(chain: Chain) -> None:
    """Killed before its colleague was woken, it ran again and asked nothing."""
    chain.asked(chain.begins("ceo", WAKE), "c1", "ceo", "cto")
    chain.runs("ceo", WAKE, "A notes board")

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board")


def test_what_was_said_so_far_shows_while_the_chain_goes_on(chain: Chain) -> None:
    chain.asks_and_waits("ceo", WAKE, "c1", "cto")

    view = chain.view()

    assert (view.state, view.answer) == ("working", "I have asked cto")


def test_turns_are_told_in_the_order_they_began_with_what_woke_them(chain: Chain) -> None:
    asked_and_answered(chain)

    views = turn_views(chain.events)

    assert [(turn.turn_id, turn.handle, turn.trigger_id, turn.state) for turn in views] == [
        ("t1", "ceo", WAKE, "done"),
        ("t2", "cto", request_of("c1"), "done"),
    ]


def test_a_turn_that_was_resumed_is_one_turn_that_began_when_it_began(chain: Chain) -> None:
    turn_id = chain.begins("ceo", WAKE)
    began = chain.events[-1].timestamp
    chain.tells(AgentTurnStarted(turn_id=turn_id, agent_handle="ceo", resumed=True))
    chain.ends(turn_id, "A notes board")

    (turn,) = chain.view().turns

    assert (turn.started_at, turn.state, turn.trigger_id) == (began, "done", WAKE)


def test_an_ask_that_was_opened_twice_is_one_ask(chain: Chain) -> None:
    chain.asked("t1", "c1", "ceo", "cto")
    chain.asked("t2", "c1", "ceo", "cto")

    assert asks_in(chain.events) == ("c1",)


def test_a_turn_whose_start_was_lost_from_the_log_is_known_by_its_end(chain: Chain) -> None:
    """Rows are written by the process that publishes; one that was killed in between wrote none."""
    summary = TriggerSummary(id=WAKE, type="any")
    chain.tells(
        AgentTurnCompleted(turn_id="t1", agent_handle="ceo", trigger=summary, decision="done", artifact="A notes board")
    )

    view = chain.view()

    assert (view.state, view.answer) == ("answered", "A notes board")


def test_only_a_message_has_a_standing(chain: Chain) -> None:
    other = new_event(OrgStarted(company="Acme"), trace=Trace("trace", "span"), now=START, ids=chain.ids)

    with pytest.raises(TypeError, match="org_started"):
        message_view(other, [], [])
