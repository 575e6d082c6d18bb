"""The journals of the seats that this node holds, and what a predecessor left in them (D11)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from crewlet.base.clock import Clock
from crewlet.base.ids import Ids
from crewlet.coordination import Leases, seat_resource
from crewlet.inbox import SeatInbox, SeatJournal
from crewlet.node.inbox_front import FrontWork
from crewlet.node.seat_pausing import SeatPausing
from crewlet.queue import Log

__all__ = ["SeatJournals", "stopped_since"]

_WRITER_DIGITS: Final = 12


class SeatJournals:
    """A journal a tenure. ``owner`` is this process as the leases know it."""

    def __init__(self, log: Log, leases: Leases, *, owner: str, clock: Clock, ids: Ids) -> None:
        self._log = log
        self._leases = leases
        self._owner = owner
        self._clock = clock
        self._ids = ids
        self._journals: dict[str, SeatJournal] = {}
        self._inboxes: dict[str, SeatInbox] = {}

    async def take_over(self, handle: str, epoch: int, put_first: Callable[[FrontWork], None]) -> None:
        """From here on the predecessor writes nothing more; what it left half done comes before any mail.

        Raises ``Unavailable``, ``Fenced``: the seat is given back then.
        """
        journal = SeatJournal(
            handle,
            self._log,
            epoch=epoch,
            writer=self._ids.hex(_WRITER_DIGITS),
            standing=lambda: self._stands(handle, epoch),
            clock=self._clock,
        )
        self._inboxes.pop(handle, None)
        self._journals[handle] = journal
        found = await journal.take_over()

        async def finish() -> None:
            await self._inboxes[handle].go_on(found)

        if found.turn is not None:
            put_first(finish)

    def of(self, handle: str) -> SeatJournal:
        """The journal that was taken over for the seat's present tenure."""
        return self._journals[handle]

    def opened(self, handle: str, inbox: SeatInbox) -> None:
        """The inbox that goes on with what was left."""
        self._inboxes[handle] = inbox

    def forget(self, handle: str) -> None:
        """The seat is no longer this node's."""
        self._journals.pop(handle, None)
        self._inboxes.pop(handle, None)

    async def _stands(self, handle: str, epoch: int) -> bool:
        lease = await self._leases.holder(seat_resource(handle))
        return lease is not None and (lease.owner, lease.epoch) == (self._owner, epoch)


def stopped_since(pausing: SeatPausing) -> Callable[[str, datetime], str]:
    """How a person stopped what a seat ran since an instant; empty where nobody did."""

    def said(handle: str, at: datetime) -> str:
        pause = pausing.stopped_by(handle)
        return f"stopped by {pause.by}" if pause is not None and pause.at > at else ""

    return said
