"""The limits of a turn as the company document sets them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from crewlet.org.document_part import DocumentPart, Later

__all__ = ["TurnEngineDocument"]


class TurnEngineDocument(DocumentPart):
    """How far a turn may go."""

    max_iterations: Annotated[int, Field(ge=1)] = 3
    """Executions of one turn, the review's repeats included."""
    max_tool_rounds: Annotated[int, Field(ge=1)] = 24
    """Model calls of one execution."""
    delegation_depth_limit: Annotated[int, Field(ge=0)] = 3
    """How many colleagues deep an ask may lead to another."""
    onboarding_max_tool_rounds: Annotated[object, Later(10)] = 10
    sandbox_min_budget_tokens: Annotated[object, Later(2000)] = 2000
    extension_enabled: Annotated[object, Later(default=True)] = True
    execute_max_tool_rounds_ceiling: Annotated[object, Later(48)] = 48
    onboarding_max_tool_rounds_ceiling: Annotated[object, Later(20)] = 20
    extension_round_step: Annotated[object, Later(8)] = 8
    delegation: Annotated[object, Later()] = None
    conversation_session: Annotated[object, Later()] = None
