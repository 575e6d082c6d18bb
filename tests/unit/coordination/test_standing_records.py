"""The pure steps of runs, mailboxes, pauses, surfaces and reports: what each makes of what stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.coordination import (
    CollectorReport,
    IntegrationPhase,
    IntegrationStatus,
    PauseChange,
    Paused,
    RunStatus,
    SandboxRun,
    SeatMailbox,
    SeatPause,
    run_given_back,
    run_resumed,
    run_suspended,
)
from crewlet.coordination.records.integrations import asked_to_disconnect, passed
from crewlet.coordination.records.mailboxes import marked, registered, stamped_absent, taken_over, unmarked
from crewlet.coordination.records.objects import reported
from crewlet.coordination.records.seat_pauses import paused

AT = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(hours=24)
RUN = SandboxRun(
    turn_id="t1",
    launch_id="l1",
    handle="cto",
    status=RunStatus.LAUNCHING,
    owner="node-0:a",
    owner_epoch=6,
    cell="container",
    started_at=AT,
    updated_at=AT,
)
ABSENT = SeatMailbox(handle="cto", registered_at=AT - DAY, absent_since=AT)
MARKED = replace(ABSENT, retiring_by="sweep-1", retiring_since=AT + DAY)


def test_a_run_gets_its_conversation_and_its_status_in_one_step_and_once() -> None:
    running = run_suspended(RUN, {"version": 1}, at=AT)

    assert running == replace(RUN, status=RunStatus.RUNNING, conversation={"version": 1})
    assert running is not None
    assert run_suspended(running, {"version": 2}, at=AT) is None


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.AWAITING_CLARIFICATION, RunStatus.RESEED])
def test_a_resume_takes_a_run_from_where_it_stands_and_gives_it_back_there(status: RunStatus) -> None:
    claimed = run_resumed(replace(RUN, status=status), "l1", at=AT)

    assert claimed is not None
    assert claimed.status is RunStatus.RESUMED
    assert run_given_back(claimed, at=AT) == replace(RUN, status=status)


def test_no_resume_takes_a_run_that_launches_or_another_launchs_or_a_resumed_one() -> None:
    running = replace(RUN, status=RunStatus.RUNNING)
    claimed = run_resumed(running, "l1", at=AT)
    assert claimed is not None

    assert run_resumed(RUN, "l1", at=AT) is None
    assert run_resumed(running, "l2", at=AT) is None
    assert run_resumed(claimed, "l1", at=AT) is None
    assert run_given_back(running, at=AT) is None


def test_a_seat_that_is_in_the_company_is_registered_and_not_absent() -> None:
    assert registered(None, "cto", at=AT) == SeatMailbox(handle="cto", registered_at=AT)
    assert registered(ABSENT, "cto", at=AT + DAY) == replace(ABSENT, absent_since=None)
    assert registered(MARKED, "cto", at=AT + DAY) == MARKED


def test_the_first_sight_of_an_absence_counts() -> None:
    present = SeatMailbox(handle="cto", registered_at=AT - DAY)

    assert stamped_absent(present, at=AT) == ABSENT
    assert stamped_absent(ABSENT, at=AT + DAY) == ABSENT


def test_a_mailbox_is_kept_for_a_day_and_not_for_less() -> None:
    just_before = AT + DAY - timedelta(seconds=1)

    assert timedelta(seconds=limits.MAILBOX_GRACE_S) == DAY
    assert marked(ABSENT, "sweep-1", now=just_before) is None
    assert marked(ABSENT, "sweep-1", now=AT + DAY) == MARKED
    assert marked(replace(ABSENT, absent_since=None), "sweep-1", now=AT + 9 * DAY) is None


def test_a_mark_is_its_sweeps_alone_for_a_quarter_of_an_hour() -> None:
    quarter = timedelta(minutes=15)
    just_before = AT + DAY + quarter - timedelta(seconds=1)

    assert timedelta(seconds=limits.MAILBOX_MARK_ABANDONED_S) == quarter
    assert marked(MARKED, "sweep-2", now=just_before) is None
    assert marked(MARKED, "sweep-1", now=just_before) == replace(MARKED, retiring_since=just_before)
    assert marked(MARKED, "sweep-2", now=AT + DAY + quarter) == replace(
        MARKED, retiring_by="sweep-2", retiring_since=AT + DAY + quarter
    )


def test_a_retirement_that_gives_up_leaves_the_absence() -> None:
    assert unmarked(MARKED) == ABSENT


def test_a_take_over_ends_the_retirement_that_was_seen() -> None:
    other = replace(MARKED, retiring_since=AT + 2 * DAY)

    assert taken_over(MARKED, MARKED, at=AT + DAY) == replace(ABSENT, absent_since=None)
    assert taken_over(other, MARKED, at=AT + DAY) == other
    assert taken_over(ABSENT, MARKED, at=AT + DAY) == replace(ABSENT, absent_since=None)
    assert taken_over(None, MARKED, at=AT + DAY) == SeatMailbox(handle="cto", registered_at=AT + DAY)


def test_a_pause_is_its_first_askers() -> None:
    pause = SeatPause(handle="cto", by="ada", at=AT, reason="too chatty")
    other = replace(pause, by="bob", at=AT + DAY)

    assert paused(None, pause) == Paused(pause, PauseChange.PAUSED)
    assert paused(pause, pause) == Paused(pause, PauseChange.PAUSED)
    assert paused(pause, other) == Paused(pause, PauseChange.NONE)
    assert paused(pause, replace(other, stop_running=True)) == Paused(
        replace(pause, stop_running=True), PauseChange.STOPS_RUNNING_TOO
    )
    assert paused(replace(pause, stop_running=True), other).change is PauseChange.NONE


def test_a_repeat_is_known_beside_what_a_newer_build_wrote() -> None:
    pause = SeatPause(handle="cto", by="ada", at=AT)
    standing = replace(pause, unknown={"until": "noon"})

    assert paused(standing, pause) == Paused(standing, PauseChange.PAUSED)


def test_a_pass_keeps_a_request_to_disconnect() -> None:
    found = IntegrationStatus(surface="github", phase=IntegrationPhase.READY)
    asked = asked_to_disconnect(found, at=AT, by="ada")

    assert passed(None, found) == found
    assert passed(asked, replace(found, attempts=2)) == replace(asked, attempts=2)
    assert asked_to_disconnect(asked, at=AT + DAY, by="bob") == asked


def test_the_later_report_stands() -> None:
    report = CollectorReport(kind="audit", node="node-0", started_at=AT, finished_at=AT)
    later = replace(report, node="node-1", finished_at=AT + DAY)

    assert reported(None, report) == report
    assert reported(report, later) == later
    assert reported(later, report) == later


def test_a_report_names_a_bounded_number_of_what_is_missing() -> None:
    with pytest.raises(ValueError, match="at most 100"):
        CollectorReport(kind="audit", node="node-0", started_at=AT, finished_at=AT, missing=("x",) * 101)
