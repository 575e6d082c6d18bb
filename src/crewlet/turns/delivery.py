"""Who is owed an answer where, and whether the calls that a turn has made prove what it says of it. Pure but one tally.

A call delivers where a tool server served it and it does not positively only read, or where a built-in is registered
as delivering; each delivers to one surface: the server's name, or what the built-in's row says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from crewlet.base import limits
from crewlet.events.types import ExternalNotification
from crewlet.inbox import Reply, Trigger
from crewlet.tools import Hint, ToolResult, ToolRow, reaches_outside
from crewlet.turns.builtin_submit_work import WorkOutcome, WorkSubmission
from crewlet.turns.setup import ToolSurface

__all__ = [
    "ANY_SURFACE",
    "CallsMade",
    "Obligation",
    "claim_problem",
    "how_to_answer",
    "obligation_of",
    "surface_of",
    "undelivered",
]

ANY_SURFACE: Final = "*"
"""What a turn owes whose asker is on no surface that the seat has a tool for: any delivery counts then."""


def surface_of(row: ToolRow) -> str:
    """Where a call of it delivers to; empty for one that delivers nothing."""
    if row.is_mcp:
        return "" if row.annotations.read_only is Hint.YES else row.server
    return row.delivers


@dataclass(slots=True)
class CallsMade:
    """What a turn's calls have come to, in all of its phases; only ever grows."""

    _made: set[str] = field(default_factory=set[str])
    _reads: set[str] = field(default_factory=set[str])
    _reached: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def note(self, row: ToolRow, result: ToolResult) -> None:
        """Count a call that succeeded, or that nobody knows to have failed: a gate must not have it made twice."""
        if not surface_of(row) and not reaches_outside(row):
            self._reads.add(row.name)
        if result.is_error and not result.unknown:
            return
        self._made.add(row.name)
        surface = surface_of(row)
        if surface:
            self._reached.setdefault(row.name, set()).add(surface)

    @property
    def reads(self) -> frozenset[str]:
        """The tools among them that only look."""
        return frozenset(self._reads)

    def made(self, tool: str) -> bool:
        """Whether a call of ``tool`` went through."""
        return tool in self._made

    def reached(self, surface: str, tools: Sequence[str] | None = None) -> bool:
        """Whether a call reached ``surface``: any call, or one of ``tools``."""
        return any(
            surface == ANY_SURFACE or surface in surfaces
            for tool, surfaces in self._reached.items()
            if tools is None or tool in tools
        )


@dataclass(frozen=True, slots=True)
class Obligation:
    """What a turn owes. ``surface`` is where its asker waits, empty where the seat has no tool that delivers at all.

    It is fixed, and on record, when the turn opens. ``tools`` are for words alone: those that deliver there now.
    """

    reply: Reply
    surface: str = ""
    tools: tuple[str, ...] = ()

    @property
    def by_tool(self) -> bool:
        """Whether a tool has to carry the answer."""
        return self.reply is Reply.TOOL

    def at(self, surface: str) -> Obligation:
        """The same as it was fixed."""
        return Obligation(self.reply, surface, self.tools)


def obligation_of(trigger: Trigger, tools: ToolSurface) -> Obligation:
    """What the turn owes, given the tools that the seat has when it begins."""
    if trigger.reply is not Reply.TOOL:
        return Obligation(trigger.reply)
    delivering = {row.name: surface_of(row) for row in _rows(tools) if surface_of(row)}
    body = trigger.told.data
    wanted = (body.owes or body.integration) if isinstance(body, ExternalNotification) else ""
    reaching = tuple(name for name, surface in delivering.items() if surface == wanted)
    if reaching:
        return Obligation(trigger.reply, wanted, reaching)
    return Obligation(trigger.reply, ANY_SURFACE if delivering else "", tuple(delivering))


def claim_problem(submission: WorkSubmission, owed: Obligation, made: CallsMade) -> str:
    """What of a submission the turn's own record refutes, said to the model; empty where it stands."""
    unmade = [tool for tool in submission.deliveries if not made.made(tool)]
    if unmade:
        return f"`deliveries` names {_named(unmade)}, but no call of it went through in this turn"
    match submission.outcome:
        case WorkOutcome.NO_ACTION if owed.by_tool:
            return f"`no_action` is not an answer: somebody waits for one. {how_to_answer(owed)}"
        case WorkOutcome.DELIVERED if owed.by_tool and not made.reached(owed.surface, submission.deliveries):
            if made.reached(owed.surface):
                return "`deliveries` is missing: name the tool whose call brought the answer to the one who asked"
            return f"nothing that you called has reached the one who asked. {how_to_answer(owed)}"
        case _:
            return ""


def undelivered(submission: WorkSubmission, owed: Obligation, made: CallsMade) -> str:
    """Why finished work is not done all the same: a tool owed the asker an answer and none was called.

    Empty where one was, and for a named blocker of a seat without any tool that delivers: nobody could do better.
    """
    if not owed.by_tool or made.reached(owed.surface):
        return ""
    if submission.outcome is WorkOutcome.BLOCKED and not owed.surface:
        return ""
    return f"The work was found good, but nothing has reached the one who asked. {how_to_answer(owed)}"


def how_to_answer(owed: Obligation) -> str:
    """What a turn has to do for its asker, in words."""
    if not owed.tools:
        return "You have no tool that delivers anything: submit `blocked` and say so in `evidence`."
    return f"Send it with one of these tools, and name it in `deliveries`: {_named(owed.tools)}."


def _rows(tools: ToolSurface) -> Iterator[ToolRow]:
    yield from (tool.row for tool in tools.builtins())
    for server in tools.servers():
        yield from tools.server_tools(server.name)


def _named(tools: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in tools[: limits.DELIVERING_TOOLS_NAMED_MAX])
    more = len(tools) - limits.DELIVERING_TOOLS_NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
