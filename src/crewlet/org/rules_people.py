"""Human seats: how they are reached, and what only an agent can have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from crewlet.base.errors import Problem
from crewlet.org.document_role import RoleDocument
from crewlet.org.variable_references import VARIABLE_REFERENCE
from crewlet.org.walk import Chart, PlacedRole

__all__ = ["people_problems"]

_AGENTS_ONLY: Final = (
    "behavioral_guidelines",
    "llm",
    "llm_judge",
    "llm_review",
    "llm_subagent",
    "mcp_env",
    "placement",
    "token_budget",
    "workers",
)
_HUMANS_ONLY: Final = ("availability", "contact")
_LITERAL_OR_REFERENCE: Final = re.compile(rf"[^${{}}]+|{VARIABLE_REFERENCE}")
_ANONYMOUS: Final = "anonymous"


def people_problems(chart: Chart) -> Iterator[Problem]:
    """Fields on the wrong kind of seat, humans without a contact, identities that are malformed or given twice."""
    taken: dict[tuple[str, str], str] = {}
    for role in chart.roles:
        yield from _fields_of_the_other_kind(role)
        if not role.is_agent:
            yield from _contacts(role, taken)


def _fields_of_the_other_kind(role: PlacedRole) -> Iterator[Problem]:
    defaults = dict(RoleDocument(name=role.written.name))
    foreign, kind = (_HUMANS_ONLY, "human") if role.is_agent else (_AGENTS_ONLY, "agent")
    for field in foreign:
        if getattr(role.written, field) != defaults[field]:
            yield Problem(f"{role.path}.{field}", f"is for {kind} seats only", f"remove it, or set `kind: {kind}`")


def _contacts(role: PlacedRole, taken: dict[tuple[str, str], str]) -> Iterator[Problem]:
    given = [(kind, value) for kind, value in role.written.contact if value]
    if not given:
        yield Problem(
            f"{role.path}.contact",
            "a human seat needs at least one contact identity",
            "for example crewlet_operator_id",
        )
    for kind, value in given:
        path = f"{role.path}.contact.{kind}"
        identity = "".join(str(value).split()).casefold()
        if not _LITERAL_OR_REFERENCE.fullmatch(value):
            yield Problem(path, "must be a literal or exactly one ${VAR}", "no mixture of both")
        elif identity in {"", _ANONYMOUS}:
            yield Problem(path, f"{value!r} is nobody's identity", "name the person's own account")
        elif (kind, identity) in taken:
            yield Problem(path, f"is already the identity of {taken[kind, identity]}", "one identity is one person")
        else:
            taken[kind, identity] = role.path
