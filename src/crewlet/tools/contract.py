"""What a tool is, whoever serves it, and which calls count as reaching outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from crewlet.base.fence import Fence
from crewlet.base.trace import Trace

__all__ = ["Annotations", "CallContext", "Hint", "Tool", "ToolResult", "ToolRow", "reaches_outside"]


class Hint(StrEnum):
    """What a tool's server, or the company document, says of it."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints about a tool's effects; the document's override what the server advertises."""

    read_only: Hint = Hint.UNKNOWN
    destructive: Hint = Hint.UNKNOWN
    idempotent: Hint = Hint.UNKNOWN
    open_world: Hint = Hint.UNKNOWN


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool of a seat's surface. ``origin`` is ``builtin`` or ``mcp:<server>``."""

    name: str
    description: str
    input_schema: Mapping[str, object]
    origin: str = "builtin"
    server: str = ""
    annotations: Annotations = field(default_factory=Annotations)
    delivers: str = ""

    @property
    def is_mcp(self) -> bool:
        """Whether a tool server serves it."""
        return self.origin.startswith("mcp:")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call brought, as text for the model; ``is_error`` flags a failed one.

    ``ends_turn`` asks the phase to finish after this round (an ask that waits for a colleague); ``ask`` is the channel
    of that ask. ``unknown``: the call was sent and what became of it is not known (it timed out, the server died), so
    it may have had its effect; such a result is an error too.
    """

    text: str
    is_error: bool = False
    ends_turn: bool = False
    ask: str = ""
    unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """For whom a call is made. ``ordinal`` counts the earlier calls of the same tool within the turn, from 0.

    ``task`` is what the turn was asked, in words; ``answers_channel`` the ask that its answer goes back to, if any;
    ``reply`` the turn's own obligation. An ask hands these on, so that its answer can wake a turn that knows them.
    """

    handle: str
    turn_id: str
    work_key: str
    fence: Fence
    trace: Trace
    ordinal: int = 0
    delegation_depth: int = 0
    delegation_chain: tuple[str, ...] = ()
    task: str = ""
    answers_channel: str = ""
    reply: str = "none"


class Tool(Protocol):
    """Something a model may call."""

    @property
    def row(self) -> ToolRow:
        """How it is described and what it may do."""
        ...

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Do it. A failure the model can read is a result with ``is_error``; ``Fenced`` and cancellation travel on."""
        ...


def reaches_outside(row: ToolRow) -> bool:
    """Whether a successful call of it proves an effect outside the engine (S-126).

    Deliberately narrow, because a true answer spends a trigger: served by a tool server and not positively read-only,
    or annotated open-world. A built-in that nobody classified proves nothing.
    """
    unproven_read = row.is_mcp and row.annotations.read_only is not Hint.YES
    return unproven_read or row.annotations.open_world is Hint.YES
