"""A unit as the company document describes it: a team, with the teams inside it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from crewlet.org.document_part import DocumentPart, Later, NestedVariables, Required, Texts
from crewlet.org.document_role import HandleText, RoleDocument

__all__ = ["UnitDocument"]


class UnitDocument(DocumentPart):
    """One unit of the organisation."""

    name: Required
    """The display name."""
    id: HandleText = ""
    """The unit's key, its identity. Minted from the name when absent."""
    type: str = "team"
    lead: str = ""
    """A seat's handle or unique name. Units inside inherit it unless they name their own."""
    purpose: str = ""
    goals: Texts = ()
    channel: str = ""
    """The unit's chat channel; inherited by the units inside."""
    mcp_env: NestedVariables = Field(default_factory=dict[str, dict[str, str]])
    """Merged under the ``mcp_env`` of the agents directly in this unit; not inherited by units inside."""
    roles: Annotated[tuple[RoleDocument, ...], Field(strict=False)] = ()
    children: Annotated[tuple[UnitDocument, ...], Field(strict=False)] = ()
    project: Annotated[object, Later()] = None
    space: Annotated[object, Later()] = None
    schedules: Annotated[object, Later()] = None
