"""Which seats this process holds: claims, renewals, admission by freshness, and letting go (S1).

It runs hooks that it knows nothing about. Here every seat of the company is this node's; placement over several
nodes fills the same interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.base.tasks import Tasks, each_at_once
from crewlet.coordination import Lease, Leases, seat_resource

__all__ = ["Host", "HostConfig", "ReleaseMode", "SeatFence", "SeatHooks"]

_log = structlog.get_logger(__name__)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """The host's clocks: a renew every third of the TTL, and what is tried again at each."""

    owner: str
    node_id: str
    ttl_s: float = limits.LEASE_TTL_S
    establish_at_once: int = limits.SEATS_ESTABLISHED_AT_ONCE

    @property
    def heartbeat_s(self) -> float:
        """The heartbeat interval: a third of the TTL in force."""
        return self.ttl_s / 3


@dataclass(slots=True)
class _Held:
    lease: Lease
    renewed_at_s: float
    established: bool = False


class SeatFence:
    """Stands while this process holds the seat under the epoch that the work was admitted with (S-074)."""

    def __init__(self, host: Host, handle: str, epoch: int) -> None:
        self._host = host
        self._handle = handle
        self._epoch = epoch

    @property
    def epoch(self) -> int:
        """The epoch of the grant."""
        return self._epoch

    def check(self) -> None:
        """Raise ``Fenced`` once the seat is gone from here or was re-claimed under another epoch."""
        held = self._host.epoch_of(self._handle)
        if held != self._epoch:
            message = f"seat {self._handle!r}: epoch {self._epoch} is over (now {held or 'not held here'})"
            raise Fenced(message)


class Host:
    """The seats of this process. All methods belong to the event loop's thread."""

    def __init__(self, *, leases: Leases, hooks: SeatHooks, clock: Clock, config: HostConfig) -> None:
        self._leases = leases
        self._hooks = hooks
        self._clock = clock
        self._config = config
        self._held: dict[str, _Held] = {}
        self._undead: dict[str, Lease] = {}
        self._wanted: tuple[str, ...] = ()
        self._draining = False
        self._tasks = Tasks("seats")

    def held(self) -> tuple[str, ...]:
        """The handles of the seats established here, in the company's order."""
        return tuple(handle for handle in self._wanted if handle in self._held and self._held[handle].established)

    def epoch_of(self, handle: str) -> int | None:
        """The epoch this process holds a seat under, or ``None``."""
        held = self._held.get(handle)
        return None if held is None else held.lease.epoch

    def may_start(self, handle: str) -> int | None:
        """The epoch to run a turn under, or ``None``: not held, not yet established, draining, or not proven lately.

        A grant is fresh while its last successful renew began at most one heartbeat interval ago, on a clock that
        counts sleep (S-053); renews start early enough that a healthy seat never reads as stale.
        """
        held = self._held.get(handle)
        if held is None or not held.established or self._draining:
            return None
        age_s = self._clock.elapsed_s() - held.renewed_at_s
        if age_s > self._config.heartbeat_s:
            _log.warning("seat_admission_stale", seat=handle, age_s=round(age_s, 3))
            return None
        return held.lease.epoch

    def fence(self, handle: str, epoch: int) -> SeatFence:
        """The fence of a grant, to hand down with the work."""
        return SeatFence(self, handle, epoch)

    async def start(self, handles: Iterable[str]) -> None:
        """Claim and establish the given seats, several at a time, then keep renewing them."""
        self._wanted = tuple(handles)
        await self._claim_missing()
        self._tasks.start("heartbeat", self._beat())

    async def release_all(self) -> None:
        """Give every seat back voluntarily; nothing is claimed any more. Stops the heartbeat."""
        self._draining = True
        await self._tasks.close()

        async def release(handle: str) -> None:
            await self._release(handle, ReleaseMode.VOLUNTARY)

        await each_at_once(list(self._held), release, at_once=self._config.establish_at_once)

    def drain(self) -> None:
        """Admit no further turn and claim nothing, also from a pass under way; what is held stays until released."""
        self._draining = True

    async def _beat(self) -> None:
        # The renew starts early, so that a healthy grant never reads as stale between two of them.
        while True:
            await asyncio.sleep(self._config.heartbeat_s * limits.RENEW_AT_FRACTION)
            await self._renew_held()
            await self._retry_undead()
            if not self._draining:
                await self._claim_missing()

    async def _renew_held(self) -> None:
        for handle, held in list(self._held.items()):
            asked_at_s = self._clock.elapsed_s()
            try:
                renewed = await self._leases.renew(held.lease, ttl_s=self._config.ttl_s)
            except Unavailable as error:
                _log.warning("seat_renew_unknown", seat=handle, error=str(error))
                if asked_at_s - held.renewed_at_s > self._config.ttl_s:
                    await self._release(handle, ReleaseMode.FENCED)
                else:
                    await self._hooks.on_unproven(handle)
                continue
            if renewed is None:
                _log.warning("seat_lease_lost", seat=handle, epoch=held.lease.epoch)
                await self._release(handle, ReleaseMode.FENCED)
            elif handle in self._held:
                held.lease, held.renewed_at_s = renewed, asked_at_s
                if held.established and not self._draining:
                    await self._hooks.on_proven(handle)

    async def _claim_missing(self) -> None:
        missing = [handle for handle in self._wanted if handle not in self._held and handle not in self._undead]
        await each_at_once(missing, self._claim, at_once=self._config.establish_at_once)

    async def _claim(self, handle: str) -> None:
        asked_at_s = self._clock.elapsed_s()
        try:
            lease = await self._leases.claim(
                seat_resource(handle),
                owner=self._config.owner,
                ttl_s=self._config.ttl_s,
                preferred=self._config.node_id,
            )
        except Unavailable as error:
            _log.warning("seat_claim_unknown", seat=handle, error=str(error))
            return
        if lease is None:
            return
        if self._draining:
            await self._give_back(handle, lease)
            return
        _log.info("seat_claimed", seat=handle, epoch=lease.epoch)
        held = self._held[handle] = _Held(lease, asked_at_s)
        try:
            await self._hooks.on_acquire(handle, lease)
        except (CrewletError, OSError) as error:
            _log.warning("seat_establish_failed", seat=handle, error=str(error))
            await self._release(handle, ReleaseMode.FENCED)
            return
        held.established = True
        _log.info("seat_established", seat=handle, epoch=lease.epoch)
        self._hooks.on_established(handle)

    async def _release(self, handle: str, mode: ReleaseMode) -> None:
        held = self._held.pop(handle, None)
        if held is None:
            return
        if not await self._torn_down(handle, mode):
            self._undead[handle] = held.lease
            return
        await self._give_back(handle, held.lease)
        _log.info("seat_released", seat=handle, epoch=held.lease.epoch, mode=str(mode))

    async def _torn_down(self, handle: str, mode: ReleaseMode) -> bool:
        try:
            await self._hooks.on_release(handle, mode)
        except (CrewletError, OSError) as error:
            _log.error("seat_release_unproven", seat=handle, error=str(error))
            return False
        return True

    async def _retry_undead(self) -> None:
        for handle, lease in list(self._undead.items()):
            try:
                await self._leases.renew(lease, ttl_s=self._config.ttl_s)
            except Unavailable:
                continue
            if await self._torn_down(handle, ReleaseMode.FENCED):
                del self._undead[handle]
                await self._give_back(handle, lease)
                _log.info("seat_release_recovered", seat=handle)

    async def _give_back(self, handle: str, lease: Lease) -> None:
        try:
            await self._leases.release(lease)
        except Unavailable as error:
            _log.warning("seat_give_back_unknown", seat=handle, error=str(error))
