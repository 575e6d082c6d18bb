"""The built-in tool that finds a colleague, a person or an agent, and says how to reach them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from crewlet.base import limits
from crewlet.tools.contract import Annotations, CallContext, Hint, ToolResult, ToolRow

__all__ = ["Colleague", "Directory", "LookupColleague", "find_colleagues"]

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Colleague:
    """A seat as its colleagues know it. ``role`` is the title, where it differs from the name."""

    handle: str
    name: str
    kind: Literal["agent", "human"] = "agent"
    role: str = ""
    unit: str = ""
    lead_of: tuple[str, ...] = ()
    manager: str = ""
    goal: str = ""
    responsibilities: tuple[str, ...] = ()
    availability: str = ""
    contact: str = ""


class Directory(Protocol):
    """Who works here, as of now."""

    def colleagues(self) -> Iterable[Colleague]:
        """All seats of the company."""
        ...


class LookupColleague:
    """``lookup_colleague``: reads the organisation and nothing else."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    @property
    def row(self) -> ToolRow:
        """How it is described."""
        return ToolRow(
            name="lookup_colleague",
            description=(
                "Find colleagues, people and agents alike, by handle, name, role, unit or what they do, and learn how "
                "to reach them. An empty query lists the company."
            ),
            input_schema={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "A handle, a name, a role, a unit, or a few words."}
                },
                "additionalProperties": False,
            },
            annotations=Annotations(read_only=Hint.YES, destructive=Hint.NO, idempotent=Hint.YES, open_world=Hint.NO),
        )

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """The colleagues that match best, best first, at most ``COLLEAGUES_SHOWN_MAX`` and how many more there are."""
        query = arguments.get("query", "")
        if not isinstance(query, str):
            return ToolResult("query must be a text", is_error=True)
        found = find_colleagues(self._directory.colleagues(), query)
        if not found:
            return ToolResult(f"Nobody matches {query!r}. An empty query lists everybody.")
        shown = found[: limits.COLLEAGUES_SHOWN_MAX]
        texts = [_described(colleague, you=colleague.handle == context.handle) for colleague in shown]
        if len(found) > len(shown):
            texts.append(f"({len(found) - len(shown)} more match; ask for something narrower.)")
        return ToolResult("\n\n".join(texts))


def find_colleagues(everybody: Iterable[Colleague], query: str) -> list[Colleague]:
    """Who matches, the best match first, equals by handle. Everybody, for an empty query."""
    wanted = query.strip().lower().removeprefix("@")
    scored = [(_score(colleague, wanted), colleague) for colleague in everybody]
    matching = [(score, colleague) for score, colleague in scored if score > 0]
    return [colleague for _, colleague in sorted(matching, key=lambda pair: (-pair[0], pair[1].handle))]


def _score(colleague: Colleague, wanted: str) -> float:
    """How well one colleague matches: identity before place, place before words; 0 for not at all."""
    if not wanted or colleague.handle.lower() == wanted:
        return 100
    titles = [colleague.name.lower(), colleague.role.lower()]
    if wanted in titles:
        return 90
    if colleague.unit.lower() == wanted or wanted in [unit.lower() for unit in colleague.lead_of]:
        return 80
    if any(wanted in text for text in (colleague.handle.lower(), *titles)):
        return 70
    if wanted in colleague.unit.lower():
        return 60
    return 50 * _words_met(colleague, wanted)


def _words_met(colleague: Colleague, wanted: str) -> float:
    """The share of the wanted words that occur, as beginnings of words, in what is known of the colleague."""
    known = " ".join(
        (
            colleague.handle,
            colleague.name,
            colleague.role,
            colleague.unit,
            *colleague.lead_of,
            colleague.goal,
            *colleague.responsibilities,
        )
    ).lower()
    words = _WORD.findall(known)
    asked = _WORD.findall(wanted)
    met = sum(any(word.startswith(ask) for word in words) for ask in asked)
    return met / len(asked) if asked else 0


def _described(colleague: Colleague, *, you: bool) -> str:
    """A few lines about one colleague; what is not known is left out."""
    title = f" ({colleague.role})" if colleague.role and colleague.role != colleague.name else ""
    kind = "a person" if colleague.kind == "human" else "an agent"
    facts = {
        "Unit": colleague.unit,
        "Leads": ", ".join(colleague.lead_of),
        "Manager": f"@{colleague.manager}" if colleague.manager else "",
        "Goal": colleague.goal,
        "Responsible for": "; ".join(colleague.responsibilities),
        "Availability": colleague.availability,
        "Reach them": colleague.contact,
    }
    head = f"@{colleague.handle}: {colleague.name}{title}, {kind}{', that is you' if you else ''}"
    return "\n".join([head, *(f"  {label}: {fact}" for label, fact in facts.items() if fact)])
