"""The limits of a turn as the company document sets them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from crewlet.org.document_part import DocumentPart, Later
from crewlet.org.document_workers import DelegationDocument

__all__ = ["TurnEngineDocument"]


class TurnEngineDocument(DocumentPart):
    """How far a turn may go."""

    max_iterations: Annotated[int, Field(ge=1)] = 3
    """Executions of one turn, the review's repeats included."""
    max_tool_rounds: Annotated[int, Field(ge=1)] = 24
    """Model calls of one execution."""
    delegation_depth_limit: Annotated[int, Field(ge=0)] = 3
    """How many colleagues deep an ask may lead to another."""
    onboarding_max_tool_rounds: Annotated[int, Field(ge=0)] = 10
    """Model calls that an agent may look around with before its first work at its place in the company; 0: none."""
    sandbox_min_budget_tokens: Annotated[object, Later(2000)] = 2000
    extension_enabled: bool = True
    """Whether an execution that is out of model calls and still at work may be granted more, by a model that judges."""
    execute_max_tool_rounds_ceiling: Annotated[int, Field(ge=1)] = 48
    """The most model calls that one execution may come to so. Not above ``max_tool_rounds``: none is granted."""
    extension_round_step: Annotated[int, Field(ge=1)] = 8
    """The most model calls that are granted at once."""
    onboarding_max_tool_rounds_ceiling: Annotated[int, Field(ge=1)] = 20
    """The most model calls that looking around may come to, granted likewise."""
    delegation: DelegationDocument = DelegationDocument()
    """How much an agent may hand to workers."""
    conversation_session: Annotated[object, Later()] = None
