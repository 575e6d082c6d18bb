"""What becomes of the turn that a predecessor left in a seat's journal."""

from __future__ import annotations

from datetime import UTC, datetime

from crewlet.inbox.journal_entries import (
    CameOut,
    Ended,
    Entry,
    Intended,
    Opened,
    Replied,
    Resumed,
    WireReply,
    WireResult,
)
from crewlet.inbox.journal_messages import wire_message
from crewlet.inbox.journal_state import LastTurn, last_turn_of
from crewlet.inbox.taking_over import Fate, fate_of
from crewlet.llm import AssistantMessage

AT = datetime(2030, 1, 1, tzinfo=UTC)
OPENED = Opened(at=AT, turn_id="turn-1")
RESUMED, AGAIN, THRICE, OFTEN = (Resumed(at=AT, writer=writer) for writer in "abcd")
INTENDED = Intended(at=AT, phase="execute/1", round_num=1, index=0)


def came_out(*, is_error: bool = False, unknown: bool = False) -> CameOut:
    result = WireResult(is_error=is_error, unknown=unknown)
    return CameOut(at=AT, phase="execute/1", round_num=1, index=0, result=result)


def replied(number: int = 1) -> Replied:
    reply = WireReply(message=wire_message(AssistantMessage(text="hm")))
    return Replied(at=AT, phase="execute/1", round_num=number, number=number, reply=reply)


def turn_of(*entries: Entry) -> LastTurn | None:
    return last_turn_of(enumerate(entries, 1))


def fate(*entries: Entry, worked: tuple[str, ...] = (), stopped: bool = False) -> Fate:
    return fate_of(turn_of(*entries), worked=worked, event_ids=["a", "b"], stopped=stopped)


def test_an_empty_journal_leaves_nothing_to_do() -> None:
    assert fate(RESUMED) is Fate.NOTHING


def test_a_turn_that_was_opened_goes_on() -> None:
    assert fate(OPENED, replied(), RESUMED) is Fate.RESUME


def test_a_turn_that_has_ended_is_finished_and_not_run() -> None:
    assert fate(OPENED, Ended(at=AT, ids=("a", "b")), RESUMED) is Fate.FINISH


def test_a_turn_of_which_one_event_is_worked_elsewhere_ends() -> None:
    assert fate(OPENED, RESUMED, worked=("b",)) is Fate.WORKED


def test_a_turn_that_a_person_stopped_meanwhile_ends_as_stopped() -> None:
    assert fate(OPENED, RESUMED, stopped=True) is Fate.STOP


def test_taken_over_three_times_without_a_new_reply_it_goes_on_and_the_fourth_time_it_is_left() -> None:
    assert fate(OPENED, replied(), RESUMED, AGAIN, THRICE) is Fate.RESUME
    assert fate(OPENED, replied(), RESUMED, AGAIN, THRICE, OFTEN) is Fate.LEAVE


def test_a_take_over_that_its_writer_tries_again_has_killed_nobody_and_counts_once() -> None:
    assert fate(OPENED, replied(), *[RESUMED] * 20) is Fate.RESUME


def test_a_new_reply_begins_the_count_of_take_overs_anew() -> None:
    assert fate(OPENED, RESUMED, AGAIN, THRICE, replied(), OFTEN) is Fate.RESUME


def test_taken_over_too_often_it_is_given_up_where_a_call_may_have_reached_outside() -> None:
    often = (RESUMED, AGAIN, THRICE, OFTEN)

    assert fate(OPENED, INTENDED, *often) is Fate.GIVE_UP
    assert fate(OPENED, INTENDED, came_out(), *often) is Fate.GIVE_UP
    assert fate(OPENED, INTENDED, came_out(is_error=True, unknown=True), *often) is Fate.GIVE_UP
    assert fate(OPENED, INTENDED, came_out(is_error=True), *often) is Fate.LEAVE


def test_only_the_last_turn_counts_and_what_has_lost_its_opening_says_nothing() -> None:
    later = Opened(at=AT, turn_id="turn-2")
    turn = turn_of(replied(), OPENED, replied(), Ended(at=AT), later, RESUMED)

    assert turn is not None
    assert (turn.opened, turn.replies, turn.ended, turn.begins_at) == (later, {}, None, 5)
    assert turn_of(replied(), INTENDED) is None


def test_an_end_whose_opening_is_forgotten_still_says_what_is_worked() -> None:
    turn = turn_of(Ended(at=AT, turn_id="turn-1", ids=("a",)), RESUMED)

    assert turn is not None
    assert (turn.opened.turn_id, turn.ids) == ("turn-1", ("a",))
    assert fate(Ended(at=AT, turn_id="turn-1", ids=("a",)), RESUMED) is Fate.FINISH


def test_what_is_written_behind_an_end_changes_nothing_of_it() -> None:
    turn = turn_of(OPENED, Ended(at=AT, ids=("a",)), replied(), Ended(at=AT, ids=("z",)))

    assert turn is not None
    assert turn.ids == ("a",)
    assert turn.last_number == 0
