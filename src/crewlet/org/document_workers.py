"""Workers: the templates that an agent hands parts of its work to, and how much of it at once."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from crewlet.org.document_part import DocumentPart, Required, Texts

__all__ = ["DelegationDocument", "WorkerDocument"]


class WorkerDocument(DocumentPart):
    """One kind of worker. It lives for one task, remembers nothing, and writes nowhere that others see."""

    description: Required
    """What it is good for; told to the agents that may use it."""
    system_prompt: Required
    tools: Texts = ()
    """What it asks for; it gets what of that its agent may call and a worker may be given. Empty: all of that."""
    model: str = ""
    """A key of ``providers.llm``, alone. Empty: the seat's ``llm.subagent`` chain."""
    max_turns: Annotated[int, Field(ge=1)] | None = None
    """Its model calls; ``turn_engine.delegation.max_turns`` where nothing is said."""
    output: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON Schema of what it hands back, an object of at most 12 properties. Empty: ``result`` and ``notes``."""


class DelegationDocument(DocumentPart):
    """How much an agent may hand to workers."""

    max_parallel: Annotated[int, Field(ge=1)] = 3
    """Workers of one call that run at the same time."""
    max_tasks_per_call: Annotated[int, Field(ge=1)] = 8
    max_turns: Annotated[int, Field(ge=1)] = 20
    """Model calls of a worker that nothing else is said of."""
    max_turns_ceiling: Annotated[int, Field(ge=1)] = 40
    """The most model calls that a template or a task may ask for."""
    budget_fraction: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Of the tokens that are left, what the workers of one call may spend together."""
    min_tokens_per_task: Annotated[int, Field(ge=0)] = 500
    """With less than this left of that share, no further task is begun."""
    task_timeout_seconds: Annotated[float, Field(gt=0)] = 300.0
    call_timeout_seconds: Annotated[float, Field(gt=0)] = 900.0
