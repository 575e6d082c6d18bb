"""What the host asks of its node: establishing a seat, giving it back, and the edges in between."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from crewlet.coordination import Lease

__all__ = ["ReleaseMode", "SeatHooks"]


class ReleaseMode(StrEnum):
    """Letting go on purpose, or having lost the lease: opposites."""

    VOLUNTARY = "voluntary"
    FENCED = "fenced"


class SeatHooks(Protocol):
    """What establishing and giving back a seat means to the node."""

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        """Establish the seat, its inbox last. Any exception gives the lease back and leaves nothing attached."""
        ...

    def on_established(self, handle: str) -> None:
        """The seat admits turns from now on; while :meth:`on_acquire` ran it admitted none (S-037)."""
        ...

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        """Undo :meth:`on_acquire`; harmless where it got only half way. Raises when the teardown is unproven."""
        ...

    async def on_unproven(self, handle: str) -> None:
        """A renew failed: the seat is kept, but no turn may start until one succeeds (S-056)."""
        ...

    async def on_proven(self, handle: str) -> None:
        """A renew succeeded: turns may start again, also after a deferral had stopped the consumer."""
        ...
