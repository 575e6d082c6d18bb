"""What a seat's inbox stands on: who holds the seat, what was worked, what runs a turn, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from crewlet.base.clock import Clock
from crewlet.base.fence import Fence, Posture
from crewlet.base.ids import Ids
from crewlet.events import Event
from crewlet.inbox.contract import RunTurn, Trigger, TurnOutcome
from crewlet.inbox.recorded_charges import RecordedCharge
from crewlet.inbox.turn_gate import TurnGate
from crewlet.notify import Sources
from crewlet.queue import Defer

__all__ = ["Admission", "Charge", "CompletionLedger", "NoRefusal", "Publish", "Refusal", "SeatInboxParts", "Settle"]

Publish = Callable[[str, Event], Awaitable[Event]]
Settle = Callable[[Trigger, TurnOutcome], Awaitable[None]]
"""Called once a trigger is done with, before it is recorded: hands the artifact to whoever is owed it. Repeatable."""


Charge = Callable[[str, RecordedCharge], Awaitable[None]]
"""Counts what a recorded reply of a seat cost, unless it is counted; it is, whatever the budgets say to it.

Raises ``Unavailable``.
"""


async def _uncharged(_handle: str, _charge: RecordedCharge) -> None:
    await asyncio.sleep(0)


class Admission(Protocol):
    """Whether a turn of the seat may start here, now."""

    def may_start(self, handle: str) -> int | None:
        """The epoch to run under, or ``None``."""
        ...

    def fence(self, handle: str, epoch: int) -> Fence:
        """The fence of that grant."""
        ...


class CompletionLedger(Protocol):
    """What has been worked already, fleet-wide; fails open both ways."""

    async def worked(self, handle: str, ids: list[str]) -> frozenset[str]:
        """Those of ``ids`` that are recorded."""
        ...

    async def record(self, handle: str, ids: list[str], *, turn_id: str, outcome: str) -> None:
        """Record ``ids`` as worked."""
        ...


class Refusal(Protocol):
    """A reason why a seat's mail has to wait at the broker, which takes its own hold on the inbox before it says so."""

    async def refuses(self, handle: str) -> Defer | None:
        """Why no turn of the seat may start just now, or ``None``. Raises nothing that it can help."""
        ...


class NoRefusal:
    """Nothing speaks against it."""

    async def refuses(self, handle: str) -> Defer | None:
        """Never."""
        await asyncio.sleep(0)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatInboxParts:
    """What a seat's inbox stands on; the gate is the node's, shared by all its seats.

    ``withheld``: why no turn of a seat may start just now, empty where nothing speaks against it. ``stopped_since``:
    how a person stopped what the seat ran since then, empty where nobody did. ``holds`` and
    ``park`` say it too, and hold the inbox meanwhile; the park also says what becomes of a turn whose budget ran out.
    ``charge`` counts what a turn's process left uncounted; without one nothing counts tokens.
    ``ended`` is told, by seat and id, of each turn whose end is on record: from then on nobody goes on with it.
    ``revision`` names the company's document in force.
    """

    admission: Admission
    posture: Posture
    withheld: Callable[[str], str] = lambda _: ""
    stopped_since: Callable[[str, datetime], str] = lambda _handle, _at: ""
    holds: Refusal = field(default_factory=NoRefusal)
    park: Refusal = field(default_factory=NoRefusal)
    ledger: CompletionLedger
    gate: TurnGate
    run_turn: RunTurn
    settle: Settle
    charge: Charge = _uncharged
    ended: Callable[[str, str], None] = lambda _handle, _turn_id: None
    revision: Callable[[], str] = lambda: ""
    publish: Publish
    sources: Sources = field(default_factory=Sources)
    clock: Clock
    ids: Ids
