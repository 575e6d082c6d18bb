"""One row for each run, folded from what it left in the log."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from crewlet.base import limits
from crewlet.events import Body, Event
from crewlet.events.types import (
    AgentPhaseCompleted,
    AgentPhaseStarted,
    AgentTurnCompleted,
    AgentTurnStarted,
    TriggerSummary,
    TurnGuardBreach,
)
from crewlet.store import EventLog, TurnRow
from tests.unit.store.test_event_log import NOON, TOPIC, event_of

_TRIGGER = TriggerSummary(id="1", type="external_notification", summary="hello")
_MICROSECOND = timedelta(microseconds=1)


async def _record(log: EventLog, *bodies: Body, at: datetime = NOON, trace_id: str = "a" * 32) -> None:
    for number, body in enumerate(bodies):
        event = event_of(body, at + timedelta(seconds=number), trace_id)
        await log.record(TOPIC, event.stamped("node-1"))


def _start(turn_id: str = "t1", *, resumed: bool = False) -> AgentTurnStarted:
    return AgentTurnStarted(
        turn_id=turn_id,
        agent_handle="ceo",
        agent_id="agent-1",
        role="Chief",
        work_key="work-1",
        conversation_key="operator:ada",
        trigger=_TRIGGER,
        resumed=resumed,
    )


def _of_seat(start: AgentTurnStarted, handle: str) -> AgentTurnStarted:
    return AgentTurnStarted(turn_id=start.turn_id, agent_handle=handle)


def _phase(name: str, tokens: int) -> AgentPhaseCompleted:
    return AgentPhaseCompleted(
        turn_id="t1",
        agent_handle="ceo",
        phase=name,
        model="example-model",
        input_tokens=tokens,
        output_tokens=tokens + 1,
        cache_read_tokens=tokens + 2,
        cache_write_tokens=tokens + 3,
    )


async def _only(log: EventLog) -> TurnRow:
    [row] = await log.turns()
    return row


async def test_a_finished_turn_is_one_row(log: EventLog) -> None:
    await _record(
        log,
        _start(),
        AgentPhaseStarted(turn_id="t1", agent_handle="ceo", phase="execute"),
        _phase("execute", 100),
        AgentPhaseStarted(turn_id="t1", agent_handle="ceo", phase="review"),
        _phase("review", 10),
        AgentTurnCompleted(
            turn_id="t1", decision="delivered", execute_model="example-model", cost_usd=0.5, duration_ms=4200
        ),
    )

    assert await _only(log) == TurnRow(
        turn_id="t1",
        started_at=NOON,
        state="complete",
        agent_handle="ceo",
        agent_id="agent-1",
        role="Chief",
        work_key="work-1",
        conversation_key="operator:ada",
        trace_id="a" * 32,
        node="node-1",
        trigger=_TRIGGER,
        phases=("execute", "review"),
        model="example-model",
        input_tokens=110,
        output_tokens=112,
        cache_read_tokens=114,
        cache_write_tokens=116,
        cost_usd=0.5,
        duration_ms=4200,
        failed=False,
        stopped=False,
        redelivered=False,
        decision="delivered",
        error="",
        error_kind="",
    )


async def test_a_running_turn_names_the_phase_that_it_is_in(log: EventLog) -> None:
    await _record(
        log,
        _start(),
        AgentPhaseStarted(turn_id="t1", phase="execute"),
        _phase("execute", 1),
        AgentPhaseStarted(turn_id="t1", phase="review"),
    )

    row = await _only(log)

    assert (row.state, row.phases, row.input_tokens) == ("running", ("execute", "review"), 1)


async def test_a_parked_turn_that_is_resumed_is_one_row_with_both_halves(log: EventLog) -> None:
    await _record(log, _start(), AgentTurnCompleted(turn_id="t1", suspended=True, duration_ms=100))
    parked = await _only(log)
    await _record(log, _start(resumed=True), at=NOON + timedelta(hours=1))
    resumed = await _only(log)
    await _record(log, AgentTurnCompleted(turn_id="t1", duration_ms=50), at=NOON + timedelta(hours=2))

    row = await _only(log)

    assert [parked.state, resumed.state, row.state] == ["parked", "running", "complete"]
    assert (row.started_at, row.duration_ms) == (NOON, 150)


@pytest.mark.parametrize(
    ("last", "error_kind", "redelivered"),
    [
        (
            AgentTurnCompleted(turn_id="t1", failed=True, error_kind="llm_unavailable", redelivered=True),
            "llm_unavailable",
            True,
        ),
        (TurnGuardBreach(turn_id="t1", kind="unhandled_exception", detail="boom"), "unhandled_exception", False),
    ],
    ids=["completion", "breach"],
)
async def test_a_failed_turn_says_why(log: EventLog, last: Body, error_kind: str, redelivered: bool) -> None:
    await _record(log, _start(), last)

    row = await _only(log)

    assert (row.state, row.failed, row.error_kind, row.redelivered) == ("complete", True, error_kind, redelivered)


async def test_the_list_is_by_latest_start_and_a_walk_visits_every_turn_once(log: EventLog) -> None:
    chance = random.Random(9)
    for number in range(20):
        at = NOON + chance.randrange(6) * _MICROSECOND
        await _record(log, _of_seat(_start(f"t{number:02}"), "ceo" if number % 2 else "cto"), at=at)
        if number % 3 == 0:
            await _record(log, _start(f"t{number:02}", resumed=True), at=at + timedelta(hours=1))
    whole = await log.turns(limit=limits.EVENT_PAGE_MAX)

    walked: list[TurnRow] = []
    while page := await log.turns(limit=3, before=walked[-1].cursor if walked else None):
        walked += page

    assert sorted(row.turn_id for row in whole) == [f"t{number:02}" for number in range(20)]
    assert [row.cursor for row in walked] == [row.cursor for row in whole]
    assert [row.cursor for row in whole] == sorted((row.cursor for row in whole), reverse=True)
    assert [row.turn_id for row in await log.turns(seat="cto", limit=50)] == [
        row.turn_id for row in whole if row.agent_handle == "cto"
    ]


async def test_a_body_of_a_successor_that_does_not_fit_leaves_the_turn_listed(log: EventLog) -> None:
    event = event_of(_start())
    unreadable: Event = replace(
        event, data=None, extra={"turn_id": "t1", "agent_handle": "ceo", "trigger": "new shape"}
    )

    await log.record(TOPIC, unreadable)

    assert (await _only(log)).turn_id == "t1"


async def test_a_list_has_a_bound(log: EventLog) -> None:
    with pytest.raises(ValueError, match="limit"):
        await log.turns(limit=0)
    with pytest.raises(ValueError, match="limit"):
        await log.turns(limit=limits.EVENT_PAGE_MAX + 1)
