"""What callers of leases saw, call by call: who asked what, from when to when, and what the answer was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from crewlet.base.clock import Clock
from crewlet.coordination import ClaimRefused, Hint, Lease, Leases

__all__ = ["LeaseCall", "RecordedLeases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseCall:
    """One call. Times are elapsed seconds; a call that was never answered ends never, and may take effect at any time.

    ``holder`` is whom a refused claim was told; ``epoch`` that of the tenure, 0 for a claim that got none.
    """

    what: Literal["claim", "renew", "release"]
    resource: str
    owner: str
    answer: Literal["yes", "no", "unknown"]
    began_s: float
    ended_s: float = math.inf
    ttl_s: float = 0.0
    epoch: int = 0
    holder: str = ""


class RecordedLeases:
    """Leases that keep in ``history`` what they were asked and what they said."""

    def __init__(self, leases: Leases, clock: Clock, history: list[LeaseCall]) -> None:
        self._leases = leases
        self._clock = clock
        self._history = history

    async def claim(
        self,
        resource: str,
        *,
        owner: str,
        ttl_s: float,
        preferred: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Lease | ClaimRefused:
        """As the leases do."""
        call = self._begun("claim", resource, owner, ttl_s)
        try:
            answer = await self._leases.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        except BaseException:
            self._history.append(call)
            raise
        if isinstance(answer, Lease):
            self._end(call, "yes", epoch=answer.epoch)
        else:
            self._end(call, "no", holder=answer.holder)
        return answer

    async def renew(self, lease: Lease, *, ttl_s: float, data: Mapping[str, Any] | None = None) -> Lease | None:
        """As the leases do."""
        call = self._begun("renew", lease.resource, lease.owner, ttl_s, lease.epoch)
        try:
            renewed = await self._leases.renew(lease, ttl_s=ttl_s, data=data)
        except BaseException:
            self._history.append(call)
            raise
        self._end(call, "no" if renewed is None else "yes", epoch=lease.epoch)
        return renewed

    async def release(self, lease: Lease) -> None:
        """As the leases do."""
        call = self._begun("release", lease.resource, lease.owner, 0.0, lease.epoch)
        try:
            await self._leases.release(lease)
        except BaseException:
            self._history.append(call)
            raise
        self._end(call, "yes", epoch=lease.epoch)

    async def holder(self, resource: str) -> Lease | None:
        """As the leases do."""
        return await self._leases.holder(resource)

    async def held(self, kind: str) -> list[Lease]:
        """As the leases do."""
        return await self._leases.held(kind)

    async def hints(self, kind: str) -> list[Hint]:
        """As the leases do."""
        return await self._leases.hints(kind)

    def _begun(
        self, what: Literal["claim", "renew", "release"], resource: str, owner: str, ttl_s: float, epoch: int = 0
    ) -> LeaseCall:
        return LeaseCall(
            what=what,
            resource=resource,
            owner=owner,
            answer="unknown",
            began_s=self._clock.elapsed_s(),
            ttl_s=ttl_s,
            epoch=epoch,
        )

    def _end(self, call: LeaseCall, answer: Literal["yes", "no"], *, epoch: int = 0, holder: str = "") -> None:
        ended_s = self._clock.elapsed_s()
        self._history.append(replace(call, answer=answer, ended_s=ended_s, epoch=epoch, holder=holder))
