"""One full event of each type, every field of its body set to something that is not its default."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from crewlet.base.trace import Trace
from crewlet.events import Body, Event, new_event
from crewlet.events.types import (
    A2aChannelClosed,
    A2aChannelOpened,
    A2aMessage,
    A2aMessageSent,
    A2aRequest,
    AgentPhaseCompleted,
    AgentPhaseStarted,
    AgentSpawned,
    AgentTerminated,
    AgentTurnCompleted,
    AgentTurnProgress,
    AgentTurnStarted,
    AgentTurnStopped,
    BudgetMeter,
    BudgetMeters,
    ExternalNotification,
    InboundDelivery,
    LlmUnavailable,
    NotificationMessage,
    NotificationsCoalesced,
    NotificationSkipped,
    OrgStarted,
    OrgStopped,
    PhaseRound,
    ProviderFallback,
    RawWebhook,
    Refusal,
    RoundNarration,
    SeatPaused,
    SeatResumed,
    TaskAssigned,
    ToolExecution,
    TriggerSummary,
    TurnBudgetExhausted,
    TurnGuardBreach,
    TurnTriggerSkipped,
)
from crewlet.testing import SeededIds

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
TRACE = Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7")
_AGENT_ID = "5d1c7f9e-8a44-5a6c-9d0a-2f3b8c1e4d70"


class _OfTurn(TypedDict):
    turn_id: str
    agent_handle: str
    agent_id: str
    role: str
    work_key: str


_OF_TURN = _OfTurn(turn_id="turn-7", agent_handle="ceo", agent_id=_AGENT_ID, role="Chief Executive", work_key="work-3")
_TRIGGER = TriggerSummary(
    id="c0ffee00-0000-4000-8000-000000000001",
    type="external_notification",
    summary="Ada asks what to build",
    actor="ada",
    timestamp=NOON,
    integration="operator",
    sender="ada",
)
_CALL = ToolExecution(
    round=2,
    name="notes_add",
    arguments={"text": "Zürich", "tags": ["a", 1, None, True, 0.5]},
    result="ok",
    started_at=NOON + timedelta(seconds=1),
    duration_ms=12,
    origin="mcp:notes",
    server="notes",
    error="late",
)
_CHANNEL = "channel-1"

BODIES: tuple[Body, ...] = (
    A2aChannelClosed(
        channel_id=_CHANNEL,
        participants=("ceo", "cto"),
        message_count=2,
        duration_ms=1500,
        closed_by="cto",
        turn_id="turn-8",
        work_key="work-4",
    ),
    A2aChannelOpened(
        channel_id=_CHANNEL,
        requester="ceo",
        target="cto",
        participants=("ceo", "cto"),
        turn_id="turn-7",
        work_key="work-3",
    ),
    A2aMessage(
        channel_id=_CHANNEL,
        requester="ceo",
        responder="cto",
        brief="What is feasible?",
        content="A notes board.",
        failed=True,
        task="Answer Ada",
        answers_channel="channel-0",
        reply="engine",
    ),
    A2aMessageSent(
        channel_id=_CHANNEL,
        sender="cto",
        recipient="ceo",
        content="A notes board.",
        turn_id="turn-8",
        work_key="work-4",
    ),
    A2aRequest(channel_id=_CHANNEL, requester="ceo", target="cto", brief="What is feasible?"),
    AgentPhaseCompleted(
        **_OF_TURN,
        phase="execute",
        iteration=2,
        model="example-model",
        provider_key="main",
        started_at=NOON,
        duration_ms=4200,
        rounds=(
            PhaseRound(
                round=1,
                started_at=NOON,
                duration_ms=900,
                model="example-model",
                input_tokens=100,
                output_tokens=20,
                cache_read_tokens=5,
                cache_write_tokens=6,
                cost_usd=0.0125,
                tool_calls=1,
                stop_reason="tool_use",
            ),
        ),
        max_rounds=40,
        input_tokens=100,
        output_tokens=20,
        total_tokens=120,
        cache_read_tokens=5,
        cache_write_tokens=6,
        cost_usd=0.0125,
        system_prompt="You are the CEO.",
        user_prompt="What should we build first?",
        response="A notes board.",
        round_narration=(RoundNarration(round=1, reasoning="hm", content="let me ask", declined=True),),
        tool_executions=(_CALL,),
        decision="delivered",
        notes="well done",
        rescue_fired=True,
        empty_answer_rounds=1,
        failed=True,
        error="the model declined",
        error_kind="refusal",
        refusal=Refusal(category="policy", explanation="no"),
        trigger=_TRIGGER,
    ),
    AgentPhaseStarted(**_OF_TURN, phase="review", iteration=2, model="example-model", provider_key="main"),
    AgentSpawned(agent_handle="ceo", agent_id=_AGENT_ID, role="Chief Executive", epoch=4),
    AgentTerminated(agent_handle="ceo", agent_id=_AGENT_ID, role="Chief Executive", reason="drain"),
    AgentTurnCompleted(
        **_OF_TURN,
        decision="delivered",
        iterations=2,
        failed=True,
        error="no model answered",
        error_kind="llm_unavailable",
        suspended=True,
        stopped=True,
        redelivered=True,
        artifact="A notes board.",
        asks=(_CHANNEL,),
        execute_model="example-model",
        review_model="other-model",
        provider_key="main",
        input_tokens=100,
        output_tokens=20,
        cache_read_tokens=5,
        cache_write_tokens=6,
        cost_usd=0.0375,
        conversation_key="operator:ada",
        trigger=_TRIGGER,
        duration_ms=5200,
    ),
    AgentTurnProgress(
        **_OF_TURN,
        phase="execute",
        iteration=2,
        round_num=3,
        state="calling",
        partial_text="Let me",
        running_call=_CALL,
        finished_call=_CALL,
        model="example-model",
    ),
    AgentTurnStarted(
        **_OF_TURN,
        trigger=_TRIGGER,
        conversation_key="operator:ada",
        started_at=NOON,
        resumed=True,
    ),
    AgentTurnStopped(**_OF_TURN, stopped_by="operator:ada", stopped_by_seat="ada", reason="wrong customer"),
    TurnBudgetExhausted(
        **_OF_TURN,
        scope="org",
        period="week",
        label="2026-W09",
        spent=101,
        ceiling=100,
        resets_at=NOON,
        error="the token budget of the company for the week 2026-W09 is spent: 101 of 100",
    ),
    BudgetMeters(
        meters=(
            BudgetMeter(
                scope=f"agent:{_AGENT_ID}",
                agent_handle="ceo",
                period="day",
                label="2026-03-01",
                used=101,
                max=100,
                state="refusing",
                resets_at=NOON,
                refused_at=NOON,
            ),
        ),
        left_out=2,
    ),
    ExternalNotification(
        integration="operator",
        agent_handle="ceo",
        agent_id=_AGENT_ID,
        notification_type="message",
        sender="ada",
        salient_body="What should we build first?",
        body="What should we build first?",
        metadata={"channel": "D1", "depth": {"n": 1}},
        requires_recon=True,
        addressed=True,
        reply="engine",
        owes="an answer",
        partition_key="event:1",
        conversation_identity="operator:ada",
        trigger_position="LOG@1:7",
        messages=(
            NotificationMessage(
                event_id="c0ffee00-0000-4000-8000-000000000001",
                sender="ada",
                salient_body="What should we build?",
                notification_type="message",
                timestamp=NOON,
                metadata={"channel": "D1"},
                requires_recon=True,
                trace_id="0af7651916cd43dd8448eb211c80319c",
                span_id="00f067aa0ba902b7",
            ),
        ),
    ),
    InboundDelivery(
        integration="operator",
        label="operator:message",
        recipient="ceo",
        sender="ada",
        body='{"text": "hello"}',
        source_event_id="c0ffee00-0000-4000-8000-000000000002",
    ),
    LlmUnavailable(**_OF_TURN, phase="execute", chain=("main", "spare"), error="503", error_kind="overloaded"),
    NotificationSkipped(
        integration="operator",
        reason="no seat matches",
        detail="cfo",
        recipient="cfo",
        sender="ada",
        source_event_id="c0ffee00-0000-4000-8000-000000000002",
    ),
    NotificationsCoalesced(
        agent_handle="ceo",
        integration="chat",
        partition_key="chat:D1",
        work_key="work-3",
        trigger_ids=("event-1", "event-2"),
        senders=("ada", "bob"),
    ),
    OrgStarted(company="Acme", seats=3),
    OrgStopped(company="Acme"),
    ProviderFallback(
        **_OF_TURN,
        phase="execute",
        iteration=2,
        from_provider_key="main",
        to_provider_key="spare",
        reason="rate_limited",
        error="429",
    ),
    RawWebhook(integration="operator", recipient="ceo", sender="ada", body="hello", metadata={"ip": "127.0.0.1"}),
    SeatPaused(
        agent_handle="ceo",
        paused_by="operator:ada",
        paused_at=NOON,
        paused_by_seat="ada",
        reason="wrong customer",
        stop_running=True,
    ),
    SeatResumed(
        agent_handle="ceo", paused_by="operator:ada", paused_at=NOON, resumed_by="operator:bob", resumed_by_seat="bob"
    ),
    TaskAssigned(
        agent_handle="ceo", task="Write the report", agent_id=_AGENT_ID, assigned_by="scheduler", timeout_seconds=600
    ),
    TurnGuardBreach(**_OF_TURN, kind="stall", detail="the same call five times"),
    TurnTriggerSkipped(
        agent_handle="ceo",
        trigger_id="c0ffee00-0000-4000-8000-000000000001",
        reason="worked already",
        detail="turn-6",
        agent_id=_AGENT_ID,
        turn_id="turn-7",
        work_key="work-3",
        abandoned=True,
    ),
)


def full_event(body: Body) -> Event:
    """An event of ``body`` with every field of the envelope set."""
    event = new_event(
        body,
        trace=TRACE,
        now=NOON,
        ids=SeededIds(7),
        event_id="c0ffee00-0000-4000-8000-0000000000ff",
        source="engine",
        delegation_depth=2,
        parent_turn_id="turn-6",
        delegation_chain=("board", "ceo"),
    )
    return replace(event, node="node-0", payload={"free": ["form", 1]})
