"""The lease of one duty as this process has it: claimed or renewed for a tick, given back, never two at once (S1)."""

from __future__ import annotations

import asyncio

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, Lease, Leases
from crewlet.duties.duty import DutyFence
from crewlet.duties.table import DutyTimes

__all__ = ["DutyTenure"]

_log = structlog.get_logger(__name__)


class DutyTenure:
    """One duty's lease. All verbs are called by one loop, one after another."""

    def __init__(self, times: DutyTimes, leases: Leases, clock: Clock, *, owner: str, node_id: str) -> None:
        self._times = times
        self._leases = leases
        self._clock = clock
        self._owner = owner
        self._node_id = node_id
        self._lease: Lease | None = None
        self._asked_s = 0.0

    @property
    def held(self) -> bool:
        """Whether the duty is this node's, as far as this node knows."""
        return self._lease is not None and self._clock.elapsed_s() < self._asked_s + self._times.ttl_s

    async def take(self) -> DutyFence | None:
        """The duty is ours for another TTL; ``None`` where a peer has it. Raises ``Unavailable``: that is not ours."""
        asked_s = self._clock.elapsed_s()
        try:
            async with asyncio.timeout(limits.DUTY_CLAIM_MAX_S):
                lease = await self._renewed() or await self._claimed()
        except TimeoutError as error:
            raise Unavailable(f"{self._times.resource}: no answer in {limits.DUTY_CLAIM_MAX_S:g} s") from error
        if lease is None:
            return None
        self._lease, self._asked_s = lease, asked_s
        return DutyFence(
            self._clock,
            name=self._times.name,
            epoch=lease.epoch,
            until_s=asked_s + self._times.ttl_s * limits.DUTY_STOPPED_AT_FRACTION,
        )

    def left_s(self) -> float:
        """For how long a tick may still work."""
        until_s = self._asked_s + self._times.ttl_s * limits.DUTY_STOPPED_AT_FRACTION
        return max(0.0, until_s - self._clock.elapsed_s())

    async def give_back(self, reason: str) -> None:
        """The duty is anybody's, if this node had it; what cannot be given back lapses."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            async with asyncio.timeout(limits.DUTY_GIVE_BACK_MAX_S):
                await self._leases.release(lease)
        except (Unavailable, TimeoutError) as error:
            _log.warning("duty_give_back_unknown", duty=self._times.name, error=str(error) or "no answer in time")
            return
        _log.info("duty_released", duty=self._times.name, epoch=lease.epoch, reason=reason)

    async def _renewed(self) -> Lease | None:
        if self._lease is None:
            return None
        renewed = await self._leases.renew(self._lease, ttl_s=self._times.ttl_s)
        if renewed is None:
            self._lease = None
        return renewed

    async def _claimed(self) -> Lease | None:
        answer = await self._claim()
        if isinstance(answer, ClaimRefused) and answer.holder == self._owner:
            # A claim of ours of which nobody heard, and which could not be taken back at the time: it would keep the
            # duty from everybody for its whole TTL.
            stray = await self._leases.holder(self._times.resource)
            if stray is not None and stray.owner == self._owner:
                _log.warning("duty_claim_recovered", duty=self._times.name, epoch=stray.epoch)
                await self._leases.release(stray)
            answer = await self._claim()
        if isinstance(answer, ClaimRefused):
            return None
        _log.info("duty_claimed", duty=self._times.name, epoch=answer.epoch)
        return answer

    async def _claim(self) -> Lease | ClaimRefused:
        return await self._leases.claim(
            self._times.resource, owner=self._owner, ttl_s=self._times.ttl_s, preferred=self._node_id
        )
