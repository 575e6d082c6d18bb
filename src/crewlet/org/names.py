"""Handles, unit keys and agent ids: what a name becomes, and what counts as an identity."""

from __future__ import annotations

import re
from typing import Final, NewType
from uuid import UUID, uuid5

from crewlet.base import limits
from crewlet.base.ids import AgentId, Handle

__all__ = ["AGENT_NAMESPACE", "HANDLE_GRAMMAR", "UnitKey", "agent_id_for", "is_handle", "mint"]

UnitKey = NewType("UnitKey", str)
"""A unit's identity in the company document."""

AGENT_NAMESPACE: Final = UUID("4efd506f-8fcb-497a-8fce-8de8deb5fe3e")
"""Fixed for ever: another value would orphan the memory of every seat of every company."""

HANDLE_GRAMMAR: Final = "a lower-case letter or digit, then lower-case letters, digits and hyphens"
_HANDLE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")


def is_handle(text: str) -> bool:
    """Whether ``text`` may name a seat or a unit."""
    return len(text) <= limits.HANDLE_MAX_CHARS and _HANDLE.fullmatch(text) is not None


def mint(name: str) -> str:
    """The handle or key that a name gives, valid or not: lower case, runs of white space become hyphens."""
    return "-".join(name.lower().split())


def agent_id_for(company: str, handle: Handle) -> AgentId:
    """The agent behind a seat: the same on every node, without any record of it (S-176)."""
    return AgentId(str(uuid5(AGENT_NAMESPACE, f"{company}:{handle}")))
