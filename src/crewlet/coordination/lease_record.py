"""What a lease's record says, and the steps from one saying to the next; no step reads a clock (S1).

A tenure ends ``ttl_s`` after its last write, on the store's own clock: no writer knows when its write will land.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.coordination.contract import Record
from crewlet.coordination.leases import LEASE_PROTOCOL, Lease
from crewlet.coordination.records.codec import SharedRecord, decode_record

__all__ = ["LeaseRecord", "StoredLease", "Wanted", "can_be_ttl", "claiming", "committed", "renewed", "stored_lease"]


def can_be_ttl(ttl_s: float) -> bool:
    """Whether any build may hold a lease for so long: added to a moment, much more would be no moment any more."""
    return 0 < ttl_s <= limits.LEASE_TTL_READ_MAX_S


class LeaseRecord(SharedRecord, frozen=True, kw_only=True):
    """One claim, and the tenure that it became. ``epoch`` is 0 in the claiming state, before there is a token.

    ``claim`` tells this claim's writes from every other's, its own owner's too. A record without a protocol is an
    older build's.
    """

    resource: str
    owner: str
    ttl_s: float
    epoch: int = 0
    claim: str = ""
    preferred: str = ""
    protocol: int = 0
    acquired_at: datetime | None = None
    after_lapse: bool = True
    data: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a time by which nobody can tell when it lapses."""
        super().__post_init__()
        if not can_be_ttl(self.ttl_s):
            raise ValueError(f"ttl_s: {self.ttl_s:g} s is no time to hold a lease for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a claim asks for. ``claim`` is its id."""

    resource: str
    owner: str
    ttl_s: float
    claim: str
    preferred: str = ""
    protocol: int = LEASE_PROTOCOL
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A lease's record as the store holds it."""

    record: Record
    said: LeaseRecord

    @property
    def ends_at(self) -> datetime:
        """When it lapses, on the store's clock."""
        return self.record.written_at + timedelta(seconds=self.said.ttl_s)

    def is_tenure(self, lease: Lease) -> bool:
        """Whether this is the very tenure that ``lease`` was granted."""
        return self.said.owner == lease.owner and self.said.epoch == lease.epoch

    def as_lease(self) -> Lease:
        """What a reader is told."""
        said = self.said
        return Lease(
            resource=said.resource,
            owner=said.owner,
            epoch=said.epoch,
            acquired_at=said.acquired_at or self.record.written_at,
            expires_at=self.ends_at,
            preferred=said.preferred,
            after_lapse=said.after_lapse,
            protocol=said.protocol,
            data=said.data,
        )


def stored_lease(record: Record) -> StoredLease:
    """``record``, read. Raises ``Unavailable`` where this build cannot: who holds the resource is then not known."""
    return StoredLease(record, decode_record(LeaseRecord, record.value))


def claiming(wanted: Wanted) -> LeaseRecord:
    """The first write of a tenure."""
    return LeaseRecord(
        resource=wanted.resource,
        owner=wanted.owner,
        ttl_s=wanted.ttl_s,
        claim=wanted.claim,
        preferred=wanted.preferred,
        protocol=wanted.protocol,
        data=dict(wanted.data),
    )


def committed(claim: StoredLease, *, epoch: int, after_lapse: bool) -> LeaseRecord:
    """The third: the token, and the moment at which the first write won, which no renewal moves (S-016)."""
    return replace(claim.said, epoch=epoch, acquired_at=claim.record.written_at, after_lapse=after_lapse)


def renewed(said: LeaseRecord, *, ttl_s: float, data: Mapping[str, Any] | None) -> LeaseRecord:
    """The same tenure for another TTL; what a newer build wrote into it stays. ``said`` itself where nothing is new."""
    if ttl_s == said.ttl_s and (data is None or data == said.data):
        return said
    return replace(said, ttl_s=ttl_s, data=said.data if data is None else dict(data))
