"""Which seats this process holds: claims, renewals, admission by freshness, and letting go (S1).

It runs hooks that it knows nothing about. Here every seat of the company is this node's; placement over several
nodes fills the same interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.base.tasks import Tasks, each_at_once
from crewlet.coordination import ClaimRefused, Lease, Leases, seat_resource

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
    """``lost`` while it is being established: whoever does that gives it up, since two must not act on one seat."""

    lease: Lease
    renewed_at_s: float
    established: bool = False
    lost: bool = False


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
        self._renew_now = asyncio.Event()
        self._tasks = Tasks("seats")

    def held(self) -> tuple[str, ...]:
        """The handles of the seats established here, in the company's order."""
        return tuple(handle for handle in self._wanted if handle in self._held and self._held[handle].established)

    def missing(self) -> tuple[str, ...]:
        """The handles of the seats that should be established here and are not."""
        held = frozenset(self.held())
        return tuple(handle for handle in self._wanted if handle not in held)

    def epoch_of(self, handle: str) -> int | None:
        """The epoch this process holds a seat under, or ``None``."""
        held = self._held.get(handle)
        return None if held is None else held.lease.epoch

    def may_start(self, handle: str) -> int | None:
        """The epoch to run a turn under, or ``None``: not held, not yet established, draining, or not proven lately.

        A grant is fresh while its last successful renew began at most one heartbeat interval ago, on a clock that
        counts sleep (S-053); renews start early enough that a healthy seat never reads as stale. One that does (the
        machine slept, the process was stopped) is renewed at once: what it refuses here waits for no heartbeat.
        """
        held = self._held.get(handle)
        if held is None or not held.established or self._draining:
            return None
        age_s = self._clock.elapsed_s() - held.renewed_at_s
        if age_s > self._config.heartbeat_s:
            _log.warning("seat_admission_stale", seat=handle, age_s=round(age_s, 3))
            self._renew_now.set()
            return None
        return held.lease.epoch

    def fence(self, handle: str, epoch: int) -> SeatFence:
        """The fence of a grant, to hand down with the work."""
        return SeatFence(self, handle, epoch)

    async def start(self, handles: Iterable[str]) -> None:
        """Claim and establish the given seats, several at a time, and keep renewing them from the first claim on."""
        self._wanted = tuple(handles)
        # Beside the claims, never behind them: a seat may take minutes to be established, and no other may go stale.
        self._tasks.start("heartbeat", self._keep_renewing())
        await self._claim_missing()
        self._tasks.start("claims", self._keep_claiming())

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

    async def _keep_renewing(self) -> None:
        # The renew starts early, so that a healthy grant never reads as stale between two of them.
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s):
                    await self._renew_now.wait()
            self._renew_now.clear()
            await self._supervised(self._renew_held)

    async def _keep_claiming(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            await self._supervised(self._retry_undead)
            if not self._draining:
                await self._supervised(self._claim_missing)

    @property
    def _pause_s(self) -> float:
        return self._config.heartbeat_s * limits.RENEW_AT_FRACTION

    async def _supervised(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:  # noqa: BLE001 - supervisor: a dead heartbeat is a node whose seats are all deaf
            _log.exception("seat_heartbeat_failed")

    async def _renew_held(self) -> None:
        lost: list[str] = []
        for handle, held in list(self._held.items()):
            if not await self._renewed(handle, held):
                lost.append(handle)
        await each_at_once(lost, self._lose, at_once=self._config.establish_at_once)

    async def _renewed(self, handle: str, held: _Held) -> bool:
        """False where the lease is gone, or must be taken for gone."""
        asked_at_s = self._clock.elapsed_s()
        try:
            renewed = await self._leases.renew(held.lease, ttl_s=self._config.ttl_s)
        except Unavailable as error:
            _log.warning("seat_renew_unknown", seat=handle, error=str(error))
            if asked_at_s - held.renewed_at_s > self._config.ttl_s:
                return False
            await self._hooks.on_unproven(handle)
            return True
        if renewed is None:
            _log.warning("seat_lease_lost", seat=handle, epoch=held.lease.epoch)
            return False
        held.lease, held.renewed_at_s = renewed, asked_at_s
        if self._held.get(handle) is held and held.established and not self._draining:
            await self._hooks.on_proven(handle)
        return True

    async def _lose(self, handle: str) -> None:
        held = self._held.get(handle)
        if held is not None and held.established:
            await self._release(handle, ReleaseMode.FENCED)
        elif held is not None:
            held.lost = True

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
        if isinstance(lease, ClaimRefused):
            _log.debug("seat_claim_refused", seat=handle, rule=str(lease.rule), holder=lease.holder, floor=lease.floor)
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
            held.lost = True
        except Exception:  # noqa: BLE001 - supervisor: one seat's fault must not end the claims of all
            _log.exception("seat_establish_broke", seat=handle)
            held.lost = True
        if held.lost:
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
        except Exception:  # noqa: BLE001 - supervisor: what is not proven is kept and tried again, whatever it failed with
            _log.exception("seat_release_broke", seat=handle)
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
