"""The leases of a single process: a node with no peer to fence against, and the tests' twin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from crewlet.base.clock import Clock
from crewlet.coordination import Lease

__all__ = ["MemoryLeases"]


@dataclass(frozen=True, slots=True)
class _Tenure:
    lease: Lease
    deadline_s: float
    released: bool = False


class MemoryLeases:
    """Leases in this process's memory; expiry counts elapsed time, sleep included.

    A first claim always says ``after_lapse``: what held the resource before this process began is not known.
    Epochs grow from ``first_epoch``; a caller that needs them to grow across processes passes a number that does.

    ``alone``: nobody else can claim here, so a tenure that ran out while the machine slept is still its owner's, and is
    renewed as long as nobody claimed it. Giving it up would fence a turn that nobody competes for.
    """

    def __init__(self, clock: Clock, *, first_epoch: int = 1, alone: bool = False) -> None:
        self._clock = clock
        self._alone = alone
        self._first_epoch = first_epoch
        self._tenures: dict[str, _Tenure] = {}

    async def claim(self, resource: str, *, owner: str, ttl_s: float, preferred: str = "") -> Lease | None:
        """Take ``resource`` if nobody holds it; ``None`` when somebody does, this owner included."""
        _check(resource, ttl_s)
        before = self._tenures.get(resource)
        if before is not None and self._is_live(before):
            return None
        now = self._clock.now()
        lease = Lease(
            resource=resource,
            owner=owner,
            epoch=self._first_epoch if before is None else before.lease.epoch + 1,
            acquired_at=now,
            expires_at=now + timedelta(seconds=ttl_s),
            preferred=preferred,
            after_lapse=before is None or not before.released,
        )
        self._tenures[resource] = _Tenure(lease, self._clock.elapsed_s() + ttl_s)
        return lease

    async def renew(self, lease: Lease, *, ttl_s: float) -> Lease | None:
        """Extend a live tenure of this owner at this epoch; ``None`` when it is no longer that."""
        _check(lease.resource, ttl_s)
        tenure = self._standing(lease)
        if tenure is None:
            return None
        renewed = replace(tenure.lease, expires_at=self._clock.now() + timedelta(seconds=ttl_s))
        self._tenures[lease.resource] = _Tenure(renewed, self._clock.elapsed_s() + ttl_s)
        return renewed

    async def release(self, lease: Lease) -> None:
        """End this tenure, if it still stands, as a voluntary release."""
        tenure = self._standing(lease)
        if tenure is not None:
            self._tenures[lease.resource] = replace(tenure, released=True)

    async def held(self, kind: str) -> list[Lease]:
        """Every live lease whose resource is ``{kind}:…``. Raises ``ValueError`` for a kind that names none."""
        if not kind or ":" in kind:
            raise ValueError(f"{kind!r} is not a kind of resource")
        return [
            tenure.lease
            for resource, tenure in self._tenures.items()
            if resource.startswith(f"{kind}:") and self._is_live(tenure)
        ]

    def _standing(self, lease: Lease) -> _Tenure | None:
        tenure = self._tenures.get(lease.resource)
        if tenure is None or tenure.released or not (self._alone or self._is_live(tenure)):
            return None
        same = tenure.lease.owner == lease.owner and tenure.lease.epoch == lease.epoch
        return tenure if same else None

    def _is_live(self, tenure: _Tenure) -> bool:
        return not tenure.released and self._clock.elapsed_s() < tenure.deadline_s


def _check(resource: str, ttl_s: float) -> None:
    kind, _, name = resource.partition(":")
    if not kind or not name:
        raise ValueError(f"{resource!r} is not a resource: it names a kind and a member, as in 'seat:ceo'")
    if ttl_s <= 0:
        raise ValueError(f"ttl_s={ttl_s} would never be held")
