"""What a turn says of itself: start, phases, progress, end, and what broke."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

import msgspec

from crewlet.events.body import Body, register

__all__ = [
    "AgentPhaseCompleted",
    "AgentPhaseStarted",
    "AgentTurnCompleted",
    "AgentTurnProgress",
    "AgentTurnStarted",
    "AgentTurnStopped",
    "LlmUnavailable",
    "PhaseRound",
    "PhaseSteer",
    "PromptSection",
    "PromptSize",
    "ProviderFallback",
    "Refusal",
    "RoundNarration",
    "SubagentBatched",
    "ToolExecution",
    "TriggerSummary",
    "TurnBudgetExhausted",
    "TurnChargeUncounted",
    "TurnGuardBreach",
]


class TriggerSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What woke the turn."""

    id: str
    type: str
    summary: str = ""
    actor: str = ""
    timestamp: datetime | None = None
    integration: str = ""
    sender: str = ""


class PhaseRound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One provider call of a phase: its time, its tokens, and what they cost where the price is known."""

    round: int
    started_at: datetime
    duration_ms: int = 0
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    tool_calls: int = 0
    stop_reason: str = ""


class RoundNarration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model said in one round besides its calls."""

    round: int
    reasoning: str = ""
    content: str = ""
    declined: bool = False


class ToolExecution(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call: what was asked, what came back. ``origin`` is ``builtin`` or ``mcp:<server>``."""

    round: int
    name: str
    arguments: dict[str, Any] = {}
    result: str = ""
    started_at: datetime | None = None
    duration_ms: int = 0
    origin: str = "builtin"
    server: str = ""
    error: str = ""


class PromptSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One part of a prompt. The parts of one prompt follow one another and are all of it: their bytes sum up to its."""

    key: str
    title: str = ""
    bytes: int = 0


class PhaseSteer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's note that this phase was the first to read, and the round that did."""

    round: int
    note_id: str
    note: str = ""
    steered_by: str = ""
    steered_by_seat: str = ""


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model said when it declined."""

    category: str = ""
    explanation: str = ""


class _OfTurn(Body, frozen=True, kw_only=True, omit_defaults=True):
    turn_id: str
    agent_handle: str = ""
    agent_id: str = ""
    role: str = ""
    work_key: str = ""

    def actor(self) -> str:
        """The seat's role, or its handle."""
        return self.role or self.agent_handle


@register
class AgentTurnStarted(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """A turn began, before its context was put together."""

    event_type: ClassVar[str] = "agent_turn_started"
    trigger: TriggerSummary | None = None
    conversation_key: str = ""
    started_at: datetime | None = None
    resumed: bool = False

    def summary(self) -> str:
        """Who began to work, and on what."""
        what = "" if self.trigger is None else f": {self.trigger.summary}"
        return f"{self.agent_handle} began a turn{what}"


@register
class AgentTurnCompleted(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """A turn ended. ``redelivered`` says that its trigger will come back and run again.

    ``cost_usd`` is ``None`` where the price of any reply is not known; a free turn says 0. ``tools`` are the names of
    what it called itself, in the order of their first calls.
    """

    event_type: ClassVar[str] = "agent_turn_completed"
    decision: str = ""
    iterations: int = 0
    failed: bool = False
    error: str = ""
    error_kind: str = ""
    suspended: bool = False
    stopped: bool = False
    redelivered: bool = False
    artifact: str = ""
    asks: tuple[str, ...] = ()
    execute_model: str = ""
    review_model: str = ""
    subagent_count: int = 0
    subagent_tokens: int = 0
    provider_key: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    conversation_key: str = ""
    trigger: TriggerSummary | None = None
    duration_ms: int = 0
    tools: tuple[str, ...] = ()

    def summary(self) -> str:
        """Who ended a turn, and how."""
        how = f"failed: {self.error_kind or self.error}" if self.failed else self.decision or "done"
        return f"{self.agent_handle} ended a turn ({how})"


@register
class AgentTurnStopped(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """A person ended this turn by pausing its seat; its trigger counts as worked."""

    event_type: ClassVar[str] = "agent_turn_stopped"
    stopped_by: str = ""
    stopped_by_seat: str = ""
    reason: str = ""

    def summary(self) -> str:
        """Who ended whose turn, and why."""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.stopped_by or 'somebody'} stopped the turn of {self.agent_handle}{why}"

    def actor(self) -> str:
        """Who stopped it."""
        return self.stopped_by


@register
class AgentTurnSteered(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a person's note to this turn: ``delivered`` to the round that read it first, or ``expired``."""

    event_type: ClassVar[str] = "agent_turn_steered"
    outcome: str = "delivered"
    note: str = ""
    note_id: str = ""
    steered_by: str = ""
    steered_by_seat: str = ""
    sent_at: datetime | None = None
    phase: str = ""
    iteration: int = 0
    round: int = 0

    def summary(self) -> str:
        """Who told whose turn something, and whether it was read."""
        what = "told" if self.outcome == "delivered" else "wanted to tell"
        return f"{self.steered_by or 'somebody'} {what} {self.agent_handle}: {self.note}"

    def actor(self) -> str:
        """Who sent the note."""
        return self.steered_by


@register
class AgentPhaseStarted(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """A phase of a turn began."""

    event_type: ClassVar[str] = "agent_phase_started"
    phase: str
    iteration: int = 1
    host_phase: str = ""
    task_id: str = ""
    model: str = ""
    provider_key: str = ""

    def summary(self) -> str:
        """Who began which phase."""
        return f"{self.agent_handle} began {self.phase}"


@register
class AgentPhaseCompleted(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """The durable record of one phase: prompts, answer, rounds, tool calls. ``cost_usd`` as the turn's.

    A phase that ran within another (a judge, a worker on ``task_id``) names that one as its host, and the host's round.
    ``max_rounds`` is what it was granted in the end, ``round_ceiling`` the most that it could have been.
    """

    event_type: ClassVar[str] = "agent_phase_completed"
    phase: str
    iteration: int = 1
    host_phase: str = ""
    host_iteration: int = 0
    host_round: int = 0
    task_id: str = ""
    model: str = ""
    provider_key: str = ""
    started_at: datetime | None = None
    duration_ms: int = 0
    rounds: tuple[PhaseRound, ...] = ()
    max_rounds: int = 0
    round_ceiling: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    system_prompt: str = ""
    user_prompt: str = ""
    system_sections: tuple[PromptSection, ...] = ()
    user_sections: tuple[PromptSection, ...] = ()
    response: str = ""
    round_narration: tuple[RoundNarration, ...] = ()
    tool_executions: tuple[ToolExecution, ...] = ()
    decision: str = ""
    notes: str = ""
    rescue_fired: bool = False
    empty_answer_rounds: int = 0
    steers: tuple[PhaseSteer, ...] = ()
    failed: bool = False
    error: str = ""
    error_kind: str = ""
    refusal: Refusal | None = None
    trigger: TriggerSummary | None = None

    def summary(self) -> str:
        """Who ended which phase, and how."""
        how = f"failed: {self.error_kind or self.error}" if self.failed else self.decision or "done"
        return f"{self.agent_handle} ended {self.phase} ({how}, {self.total_tokens} tokens)"


@register
class AgentTurnProgress(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """Live only: where a running turn stands. ``round_num`` -1 is the opening frame."""

    event_type: ClassVar[str] = "agent_turn_progress"
    phase: str = ""
    iteration: int = 1
    host_phase: str = ""
    task_id: str = ""
    round_num: int = -1
    state: str = ""
    partial_text: str = ""
    running_call: ToolExecution | None = None
    finished_call: ToolExecution | None = None
    model: str = ""

    def summary(self) -> str:
        """Where the turn stands."""
        where = f" round {self.round_num}" if self.round_num >= 0 else ""
        return f"{self.agent_handle}: {self.phase}{where} {self.state}"


@register
class PromptSize(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """How large one phase's opening prompt was, in bytes, and about how many tokens that is (E-139).

    ``message_bytes`` counts the whole conversation that the phase began with, ``user_bytes`` its first message.
    """

    event_type: ClassVar[str] = "prompt.size"
    phase: str
    iteration: int = 1
    system_bytes: int = 0
    user_bytes: int = 0
    message_bytes: int = 0
    tool_bytes: int = 0
    tool_count: int = 0
    tokens_approx: int = 0

    def summary(self) -> str:
        """Whose prompt, and its size."""
        total = self.system_bytes + self.message_bytes + self.tool_bytes
        return f"{self.agent_handle}: {self.phase} began with {total} bytes, about {self.tokens_approx} tokens"


@register
class SubagentBatched(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """The workers of one ``delegate`` call: ``graph`` says what each task waited for, ``statuses`` how each ended."""

    event_type: ClassVar[str] = "subagent_batched"
    phase: str = ""
    iteration: int = 1
    round: int = 0
    graph: dict[str, tuple[str, ...]] = {}
    statuses: dict[str, str] = {}
    total_tokens: int = 0
    started_at: datetime | None = None
    duration_ms: int = 0

    def summary(self) -> str:
        """Whose workers, and how many came back with something."""
        good = sum(status == "ok" for status in self.statuses.values())
        return f"{self.agent_handle} had {len(self.statuses)} tasks done by workers ({good} ok)"


@register
class LlmUnavailable(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """Every model of the chain was tried and none answered."""

    event_type: ClassVar[str] = "llm_unavailable"
    phase: str = ""
    chain: tuple[str, ...] = ()
    error: str = ""
    error_kind: str = ""

    def summary(self) -> str:
        """Whose chain is exhausted, and the last error."""
        return f"no model answered {self.agent_handle} ({', '.join(self.chain)}): {self.error}"


@register
class TurnBudgetExhausted(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """A token budget ended the turn: a charge was refused, or a call would have been.

    The window that refuses is ``period`` and ``label`` of ``scope`` (``org`` or ``agent:{id}``).
    """

    event_type: ClassVar[str] = "budget_exhausted"
    scope: str
    period: str
    label: str = ""
    spent: int = 0
    ceiling: int | None = None
    resets_at: datetime | None = None
    error: str = ""

    def summary(self) -> str:
        """Whose turn was ended, by which budget."""
        return f"{self.agent_handle}: {self.error or f'the {self.period} budget of {self.scope} is spent'}"


@register
class TurnChargeUncounted(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """What a reply of the turn cost could not be counted before the turn ended: ``tokens`` may be in no counter.

    ``lane`` and ``number`` are what the charge is known by.
    """

    event_type: ClassVar[str] = "turn_charge_uncounted"
    lane: str
    number: int
    tokens: int
    provider_key: str = ""
    model: str = ""
    error: str = ""

    def summary(self) -> str:
        """Whose tokens are not known to be counted, and why."""
        return f"{self.agent_handle}: {self.tokens} tokens are not known to be counted: {self.error}"


@register
class ProviderFallback(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """The chain moved on for one provider call. ``to_provider_key`` is empty after the last member."""

    event_type: ClassVar[str] = "provider_fallback"
    phase: str = ""
    iteration: int = 1
    from_provider_key: str = ""
    to_provider_key: str = ""
    reason: str = ""
    error: str = ""

    def summary(self) -> str:
        """From which entry to which, and why."""
        successor = self.to_provider_key or "nobody"
        return f"{self.agent_handle}: {self.from_provider_key} gave way to {successor}: {self.reason}"


@register
class TurnGuardBreach(_OfTurn, frozen=True, kw_only=True, omit_defaults=True):
    """A guard ended the turn.

    ``stall``, ``max_iter``, ``depth_cap``, ``repeated_call``, ``scheduled_timeout``, ``unhandled_exception``.
    """

    event_type: ClassVar[str] = "turn.guard_breach"
    kind: str
    detail: str = ""

    def summary(self) -> str:
        """Whose turn was ended, by which guard."""
        return f"{self.agent_handle}: the guard {self.kind} ended the turn: {self.detail}"
