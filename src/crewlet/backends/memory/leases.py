"""The leases of a single process: a node with no peer to fence against, and the tests' twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.coordination import (
    ClaimRefused,
    Hint,
    Lease,
    RefusalRule,
    check_ttl,
    checked_kind,
    resource_kind,
)

__all__ = ["MemoryLeases"]


@dataclass(frozen=True, slots=True)
class _Tenure:
    lease: Lease
    deadline_s: float
    released: bool = False


class MemoryLeases:
    """Leases in this process's memory; expiry counts elapsed time, sleep included. See ``Leases`` for each verb.

    There is no peer, so no lower protocol to wait for; what a fleet would refuse for its length is refused here too.

    A first claim always says ``after_lapse``: what held the resource before this process began is not known.
    Epochs grow from ``first_epoch``; a caller that needs them to grow across processes passes a number that does.

    ``alone``: nobody else can claim here, so a tenure that ran out while the machine slept is still its owner's, and is
    renewed as long as nobody claimed it. Giving it up would fence a turn that nobody competes for.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        first_epoch: int = 1,
        alone: bool = False,
        lease_ttl_s: float = limits.LEASE_TTL_S,
    ) -> None:
        self._clock = clock
        self._lease_ttl_s = lease_ttl_s
        self._alone = alone
        self._first_epoch = first_epoch
        self._tenures: dict[str, _Tenure] = {}

    async def claim(
        self,
        resource: str,
        *,
        owner: str,
        ttl_s: float,
        preferred: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Lease | ClaimRefused:
        """Take ``resource`` where nobody holds it, this owner included."""
        check_ttl(resource, ttl_s, lease_ttl_s=self._lease_ttl_s)
        before = self._tenures.get(resource)
        if before is not None and self._is_live(before):
            return ClaimRefused(RefusalRule.HELD, before.lease.owner)
        now = self._clock.now()
        lease = Lease(
            resource=resource,
            owner=owner,
            epoch=self._first_epoch if before is None else before.lease.epoch + 1,
            acquired_at=now,
            expires_at=now + timedelta(seconds=ttl_s),
            preferred=preferred,
            after_lapse=before is None or not before.released,
            data=dict(data or {}),
        )
        self._tenures[resource] = _Tenure(lease, self._clock.elapsed_s() + ttl_s)
        return lease

    async def renew(self, lease: Lease, *, ttl_s: float, data: Mapping[str, Any] | None = None) -> Lease | None:
        """Extend a live tenure of this owner at this epoch; ``None`` when it is no longer that."""
        check_ttl(lease.resource, ttl_s, lease_ttl_s=self._lease_ttl_s)
        tenure = self._standing(lease)
        if tenure is None:
            return None
        renewed = replace(
            tenure.lease,
            expires_at=self._clock.now() + timedelta(seconds=ttl_s),
            data=tenure.lease.data if data is None else dict(data),
        )
        self._tenures[lease.resource] = _Tenure(renewed, self._clock.elapsed_s() + ttl_s)
        return renewed

    async def release(self, lease: Lease) -> None:
        """End this tenure, if it still stands, as a voluntary release."""
        tenure = self._standing(lease)
        if tenure is not None:
            self._tenures[lease.resource] = replace(tenure, released=True)

    async def holder(self, resource: str) -> Lease | None:
        """The live lease of ``resource``, or ``None``."""
        resource_kind(resource)
        tenure = self._tenures.get(resource)
        return tenure.lease if tenure is not None and self._is_live(tenure) else None

    async def held(self, kind: str) -> list[Lease]:
        """Every live lease whose resource is ``{kind}:…``."""
        return [tenure.lease for tenure in self._of_kind(kind) if self._is_live(tenure)]

    async def hints(self, kind: str) -> list[Hint]:
        """What is remembered of every resource of this kind."""
        leases = [tenure.lease for tenure in self._of_kind(kind)]
        return [Hint(lease.resource, lease.epoch, lease.preferred) for lease in leases]

    def _of_kind(self, kind: str) -> list[_Tenure]:
        prefix = f"{checked_kind(kind)}:"
        return [tenure for resource, tenure in self._tenures.items() if resource.startswith(prefix)]

    def _standing(self, lease: Lease) -> _Tenure | None:
        tenure = self._tenures.get(lease.resource)
        if tenure is None or tenure.released or not (self._alone or self._is_live(tenure)):
            return None
        same = tenure.lease.owner == lease.owner and tenure.lease.epoch == lease.epoch
        return tenure if same else None

    def _is_live(self, tenure: _Tenure) -> bool:
        return not tenure.released and self._clock.elapsed_s() < tenure.deadline_s
