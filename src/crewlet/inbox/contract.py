"""What wakes a turn and what becomes of it; the turn itself is called through a callback (``RunTurn``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from crewlet.base.fence import Fence
from crewlet.base.ids import TurnId, WorkKey
from crewlet.base.trace import Trace
from crewlet.events import Event
from crewlet.inbox.thread_shown import ThreadShown
from crewlet.inbox.turn_journal import TurnJournal
from crewlet.notify import ThreadBlock

__all__ = ["Decision", "Reply", "RunTurn", "Trigger", "TurnOutcome"]


class Reply(StrEnum):
    """Who is owed an answer, and how: nobody, through a tool, or by the engine returning the artifact."""

    NONE = "none"
    TOOL = "tool"
    ENGINE = "engine"


class Decision(StrEnum):
    """How a turn ended."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One unit of work for a seat: the events it is made of, and what the turn inherits from them.

    Of several events, ``digest`` is the one that they were merged into, which says it all; the key, the trace and
    what is recorded remain the events' own. ``task`` is what was asked, in words. ``answers_channel`` is the open ask
    that this work is to answer, if any. ``showing`` is the chat thread around the message, where it may be in one.
    """

    handle: str
    events: tuple[Event, ...]
    work_key: WorkKey
    reply: Reply
    trace: Trace
    conversation_key: str = ""
    delegation_depth: int = 0
    delegation_chain: tuple[str, ...] = ()
    answers_channel: str = ""
    task: str = ""
    headroom: int = 0
    digest: Event | None = None
    showing: ThreadShown | None = field(default=None, compare=False)

    @property
    def thread(self) -> ThreadBlock | None:
        """The chat thread around the message, once it was read, and where the message is in one."""
        return None if self.showing is None else self.showing.block

    async def read_thread(self) -> None:
        """Have :attr:`thread` be what the turn is shown. It may take its time, so a turn tells its start before."""
        if self.showing is not None:
            await self.showing.read()

    @property
    def lead(self) -> Event:
        """The event the turn answers first."""
        return self.events[0]

    @property
    def told(self) -> Event:
        """The event that the turn is told of: the only one, or the digest of all."""
        return self.digest or self.lead


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutcome:
    """How a turn ended, and what decides over its trigger.

    ``finished`` is true when the turn ran to an end of its own (done, skipped, judged failed, ended by a guard): its
    trigger is recorded and acknowledged. A turn that broke (no model answered, a store did not) is not finished: its
    trigger comes back, unless ``reached_outside`` proves a call that cannot be repeated. ``shown_messages`` are the
    ledger's keys of other messages that waited in the thread the turn was shown, and that it answered with it.
    """

    turn_id: TurnId
    decision: Decision
    finished: bool
    artifact: str = ""
    error: str = ""
    error_kind: str = ""
    reached_outside: bool = False
    asks: tuple[str, ...] = ()
    shown_messages: tuple[str, ...] = ()


RunTurn = Callable[[Trigger, Fence, TurnJournal], Awaitable[TurnOutcome]]
"""Runs one turn, or the rest of one that its journal has a part of.

Raises ``Fenced`` when the seat moved meanwhile, and nothing else on purpose.
"""
