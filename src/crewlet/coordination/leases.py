"""Leases: who holds which resource, under which epoch, until when (S1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

__all__ = ["Lease", "Leases", "seat_resource"]


@dataclass(frozen=True, slots=True)
class Lease:
    """One tenure. ``owner`` is a process incarnation (``node-0:9f3c1e70``), ``preferred`` the stable node id.

    ``after_lapse`` is true unless the tenure before this one is known to have ended by a voluntary release.
    """

    resource: str
    owner: str
    epoch: int
    acquired_at: datetime
    expires_at: datetime
    preferred: str = ""
    after_lapse: bool = True


class Leases(Protocol):
    """Exclusive tenures with a fencing epoch that never repeats for a resource (S-004)."""

    async def claim(self, resource: str, *, owner: str, ttl_s: float, preferred: str = "") -> Lease | None:
        """Take ``resource`` if nobody holds it; ``None`` when somebody does, this owner included.

        Raises ``Unavailable``; a claim that outlived its own TTL fails.
        """
        ...

    async def renew(self, lease: Lease, *, ttl_s: float) -> Lease | None:
        """Extend a live tenure of this owner and epoch; ``None`` when it is that no more. Raises ``Unavailable``."""
        ...

    async def release(self, lease: Lease) -> None:
        """End this tenure, if it still stands, as a voluntary release. Raises ``Unavailable``."""
        ...

    async def held(self, kind: str) -> list[Lease]:
        """Every live lease whose resource is ``{kind}:…``. Raises ``Unavailable``."""
        ...


def seat_resource(handle: str) -> str:
    """The lease name of a seat."""
    return f"seat:{handle}"
