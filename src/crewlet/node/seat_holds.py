"""The named holds on the inboxes of the seats that this node has: taken before the attach, gone with it (E-080)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from crewlet.queue import EventQueue, inbox_of

__all__ = ["FRONT", "PAUSED", "SeatHolds"]

PAUSED: Final = "seat_paused"
"""A person paused the seat."""
FRONT: Final = "inbox_front"
"""Work of a predecessor comes first."""


class SeatHolds:
    """Which holds stand on which inbox here. A seat's are kept from :meth:`open` to :meth:`forget`, others ignored.

    ``may_start`` says whether a seat admits turns here.
    """

    def __init__(self, queue: EventQueue, may_start: Callable[[str], int | None]) -> None:
        self._queue = queue
        self._may_start = may_start
        self._standing: dict[str, set[str]] = {}
        self._on_change: list[Callable[[str], None]] = []

    def on_change(self, call: Callable[[str], None]) -> None:
        """Call ``call`` with the seat's handle whenever a hold of it was taken or lifted."""
        self._on_change.append(call)

    def seats(self) -> list[str]:
        """The seats that are kept."""
        return [*self._standing]

    def of(self, handle: str) -> Collection[str]:
        """The names of the holds that stand on a seat's inbox."""
        return frozenset(self._standing.get(handle, ()))

    def open(self, handle: str) -> None:
        """The seat is this node's from now on."""
        self._standing.setdefault(handle, set())

    async def hold(self, handle: str, name: str) -> None:
        """Nothing is fetched for the seat while the hold stands. Raises ``Unavailable``."""
        if handle in self._standing:
            self._standing[handle].add(name)
            await self._queue.hold(inbox_of(handle), name)
            self._changed(handle)

    async def lift(self, handle: str, name: str) -> None:
        """End one hold; harmless where it does not stand. Raises ``Unavailable``."""
        if handle in self._standing:
            self._standing[handle].discard(name)
            await self._queue.lift(inbox_of(handle), name)
            self._changed(handle)

    async def release(self, handle: str, name: str) -> None:
        """End one hold, and fetch again what was handed back for its sake. Raises ``Unavailable``."""
        await self.lift(handle, name)
        # A delivery that was deferred had stopped the consumer, and the next renew may be far off.
        if self._may_start(handle) is not None:
            await self._queue.unquiesce(inbox_of(handle))

    def forget(self, handle: str) -> None:
        """The seat is no longer this node's; its holds went with its attachment."""
        self._standing.pop(handle, None)

    def _changed(self, handle: str) -> None:
        for call in self._on_change:
            call(handle)
