"""How far a turn may go, as one frozen object that ``node`` builds."""

from __future__ import annotations

from dataclasses import dataclass, field

from crewlet.base import limits

__all__ = ["DelegationConfig", "TurnConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationConfig:
    """The bounds of the workers of one call; ``max_turns`` are a worker's model calls where nothing else is said."""

    max_parallel: int = 3
    max_tasks_per_call: int = 8
    max_turns: int = 20
    max_turns_ceiling: int = 40
    budget_fraction: float = 0.2
    min_tokens_per_task: int = 500
    task_timeout_s: float = 300.0
    call_timeout_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnConfig:
    """The bounds of a turn. A delegation depth at ``delegation_depth_limit`` runs no phase at all.

    With ``onboarding_max_tool_rounds`` at 0 no onboarding begins.
    """

    max_iterations: int = 3
    max_tool_rounds: int = 24
    review_max_rounds: int = 4
    delegation_depth_limit: int = 3
    onboarding_max_tool_rounds: int = 10
    extension_enabled: bool = True
    execute_max_tool_rounds_ceiling: int = 48
    onboarding_max_tool_rounds_ceiling: int = 20
    extension_round_step: int = 8
    delegation: DelegationConfig = field(default_factory=DelegationConfig)
    correctives_max: int = limits.FINISHING_CORRECTIVES_MAX
    model_call_backstop_s: float = limits.MODEL_CALL_BACKSTOP_S
    tool_call_backstop_s: float = limits.TOOL_CALL_BACKSTOP_S
    live_text_every_s: float = limits.LIVE_TEXT_EVERY_S
    record_attempts_max: int = limits.TURN_RECORD_ATTEMPTS_MAX
    record_backoff_first_s: float = limits.TURN_RECORD_BACKOFF_FIRST_S

    def __post_init__(self) -> None:
        counts = (self.max_iterations, self.max_tool_rounds, self.review_max_rounds, self.record_attempts_max)
        if min(counts) < 1:
            raise ValueError(f"a turn needs at least one iteration, round and attempt: {counts}")
