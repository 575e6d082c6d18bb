"""Leases: who holds which resource, under which epoch, until when (S1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from crewlet.base.errors import CrewletError

__all__ = ["LEASE_PROTOCOL", "ClaimRefused", "Hint", "Lease", "Leases", "RefusalRule", "TtlTooLong"]

LEASE_PROTOCOL: Final = 4
"""What holding a seat obliges to, as a number (S-209).

Raised only where holding one comes to mean something that a build before could not honour, never for a new field. At
4 a holder settles the completion ledger, satisfies the seat's placement, and charges the windowed token counters.
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """One tenure, as it was last read. ``owner`` is a process incarnation (``node-0:9f3c1e70``).

    ``preferred`` is the stable node id. ``epoch`` is the fence; 0 in a listing is a claim that has no epoch yet, which
    everybody reads as held. Both times are on the store's clock; nothing is decided by ``acquired_at`` (S-017).
    ``after_lapse`` is true unless the tenure before this one is known to have ended by a voluntary release.
    ``data`` is what its holder says about itself, untouched by the store.
    """

    resource: str
    owner: str
    epoch: int
    acquired_at: datetime
    expires_at: datetime
    preferred: str = ""
    after_lapse: bool = True
    protocol: int = LEASE_PROTOCOL
    data: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)


class RefusalRule(StrEnum):
    """Which of the two rules refused a claim."""

    HELD = "held"
    PROTOCOL = "protocol"


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """The store said no. ``holder`` is the owner in the way: of the resource, or of a lease at a lower protocol.

    ``floor`` is the lowest protocol that a live seat or presence lease is held at, where that is the reason (S-193).
    """

    rule: RefusalRule
    holder: str
    floor: int | None = None


@dataclass(frozen=True, slots=True)
class Hint:
    """What outlives the tenures of a resource: its last epoch, and the node that last claimed it (C-052)."""

    resource: str
    epoch: int
    preferred: str


class TtlTooLong(CrewletError, ValueError):
    """A lease was asked for longer than its bucket keeps one; nothing was written (C-115, C-159)."""

    def __init__(self, resource: str, *, ttl_s: float, ceiling_s: float) -> None:
        self.resource = resource
        self.ttl_s = ttl_s
        self.ceiling_s = ceiling_s
        super().__init__(f"{resource!r}: a lease of {ttl_s:g} s is above the ceiling of {ceiling_s:g} s")


class Leases(Protocol):
    """Exclusive tenures with a fencing epoch that never repeats for a resource (S-004).

    A resource is ``{kind}:{member}``. Seats and nodes live under the lease TTL, every other kind under its own, up to
    three hours; verbs raise ``ValueError`` for a name that addresses none and ``TtlTooLong`` above the ceiling.
    Unknown is never no: each verb raises ``Unavailable`` where the store did not say.
    """

    async def claim(
        self,
        resource: str,
        *,
        owner: str,
        ttl_s: float,
        preferred: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Lease | ClaimRefused:
        """Take ``resource`` where nobody holds it, this owner included; a lapsed tenure is taken under a new epoch.

        A seat is refused also while a live seat or presence lease is held at a lower protocol. A claim that fails, or
        took as long as its own TTL, gives back what it wrote and raises ``Unavailable`` (S-011).
        """
        ...

    async def renew(self, lease: Lease, *, ttl_s: float, data: Mapping[str, Any] | None = None) -> Lease | None:
        """Extend a live tenure of this owner and epoch, with new ``data`` where given; ``None`` where it is over.

        A tenure that this process once released is over for it, whether or not the release got through. On
        ``Unavailable`` the tenure may stand: the caller keeps it for the moment, and its own clock bounds how long
        (C-009).
        """
        ...

    async def release(self, lease: Lease) -> None:
        """End this tenure, if it still stands, as a voluntary release: its work is torn down already."""
        ...

    async def holder(self, resource: str) -> Lease | None:
        """The live lease of ``resource``, or ``None``."""
        ...

    async def held(self, kind: str) -> list[Lease]:
        """Every live lease whose resource is ``{kind}:…``."""
        ...

    async def hints(self, kind: str) -> list[Hint]:
        """What is remembered of every resource of this kind that was ever claimed."""
        ...
