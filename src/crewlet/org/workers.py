"""A company's workers and what limits them, as turns are given them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DelegationLimits", "WorkerTemplate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTemplate:
    """One kind of worker; an empty ``model`` is the seat's own chain, an empty ``output`` the usual one."""

    name: str
    description: str
    system_prompt: str
    tools: tuple[str, ...]
    model: str
    max_turns: int
    output: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationLimits:
    """How much an agent may hand to workers at once; see the document's part of that name."""

    max_parallel: int
    max_tasks_per_call: int
    max_turns: int
    max_turns_ceiling: int
    budget_fraction: float
    min_tokens_per_task: int
    task_timeout_s: float
    call_timeout_s: float
