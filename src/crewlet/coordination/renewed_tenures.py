"""The tenures that this process renewed last, as it wrote them: the next renewal need not read what it wrote itself."""

from __future__ import annotations

from crewlet.base import limits
from crewlet.coordination.lease_record import StoredLease
from crewlet.coordination.leases import Lease

__all__ = ["RenewedTenures"]


class RenewedTenures:
    """Bounded. What is remembered proves nothing by itself: a write over it succeeds only while it still stands."""

    def __init__(self) -> None:
        self._written: dict[str, StoredLease] = {}

    def of(self, lease: Lease) -> StoredLease | None:
        """The record of this very tenure, as this process last wrote it."""
        written = self._written.get(lease.resource)
        return written if written is not None and written.is_tenure(lease) else None

    def remember(self, written: StoredLease) -> None:
        """This is what stands, until somebody writes over it."""
        resource = written.said.resource
        self._written.pop(resource, None)
        self._written[resource] = written
        while len(self._written) > limits.RENEWED_TENURES_REMEMBERED_MAX:
            del self._written[next(iter(self._written))]

    def forget(self, resource: str) -> None:
        """It stands no more, or that is not known."""
        self._written.pop(resource, None)
