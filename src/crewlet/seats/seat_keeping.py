"""One seat as this process has it, from the claim to the release; its steps happen one after another (S1)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination import ClaimRefused, Lease, Leases, seat_resource
from crewlet.seats.hooks import ReleaseMode, SeatHooks
from crewlet.seats.host_config import HostConfig
from crewlet.seats.step_queue import StepQueue
from crewlet.seats.teardown import Teardown

__all__ = ["Around", "KeptSeat", "StillFits"]

_log = structlog.get_logger(__name__)

StillFits = Callable[[str], Awaitable[bool]]
"""Whether this node still has room for the seat, as the fleet is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What all seats of a host share. ``may_claim`` is asked again once a lease is there: a drain may have begun."""

    leases: Leases
    hooks: SeatHooks
    clock: Clock
    config: HostConfig
    tasks: Tasks
    may_claim: Callable[[], bool]
    on_given_back: Callable[[], Awaitable[None]]


class KeptSeat:
    """A seat of this process. Claim, release and retry are steps that never overlap; renews may come between.

    ``lease`` is ``None`` where nothing is held. A held seat is *established* or on its way; one whose teardown is not
    proven is *undead*: it starts nothing, and its lease is kept and renewed so that nobody else takes it (S-044).
    """

    def __init__(self, handle: str, around: Around) -> None:
        self.handle = handle
        self.lease: Lease | None = None
        self.established = False
        self.renewed_at_s = 0.0
        self._around = around
        self._lost = False
        self._establishing: asyncio.Task[None] | None = None
        self._fenced = False
        self._teardown = Teardown(handle, around.hooks, around.clock, around.tasks)
        self._letting_go = False
        self._steps = StepQueue(around.tasks, handle)

    @property
    def held(self) -> bool:
        """Whether this process has the seat and may still let it work."""
        return self.lease is not None and not self.undead

    @property
    def undead(self) -> bool:
        """Whether its teardown failed and was not made good since."""
        return self._teardown.unproven

    @property
    def letting_go(self) -> bool:
        """Whether it is being given back: a running turn may hold that up for long."""
        return self._letting_go

    @property
    def grant(self) -> int | None:
        """The epoch that work admitted here may go on under: until the lease is gone, or must be taken for gone.

        A voluntary release lets the running turn end, and a teardown that is not proven races nobody (S-078). Once no
        renew has succeeded for as long as a lease lasts, a peer may have begun: whoever was stopped or slept that long
        acts no more before it has looked (trap 24).
        """
        return None if self.lease is None or self._fenced or self.left_s <= 0 else self.lease.epoch

    @property
    def left_s(self) -> float:
        """For how many seconds the last good renew still proves the lease; for ever where nobody else can claim."""
        if self._around.config.alone:
            return math.inf
        return self.renewed_at_s + self._around.config.proven_s - self._now_s()

    @property
    def undead_for_s(self) -> float:
        """For how long its teardown has failed."""
        return self._teardown.unproven_for_s

    @property
    def idle(self) -> bool:
        """Nothing is held and no step is under way: it may be forgotten."""
        return self.lease is None and not self.undead and self._steps.is_done

    async def claim(self, *, still_fits: StillFits | None = None) -> Lease | ClaimRefused | None:
        """Take the seat if it is free; returns with the store's word, and what follows goes on: see :meth:`settled`.

        ``None``: nothing was taken, for a reason that is in the log. ``still_fits`` is asked once the lease of a seat
        is there that somebody gave back; where it says no, that goes back before anything is attached.
        """
        answer: asyncio.Future[Lease | ClaimRefused | None] = asyncio.get_running_loop().create_future()
        self._steps.begin("claim", lambda: self._claim(answer, still_fits))
        return await answer

    async def settled(self) -> None:
        """Return once every step begun so far is done."""
        await self._steps.settled()

    def release(self, mode: ReleaseMode, reason: str) -> None:
        """Give the seat back; harmless where it is not held. See :meth:`settled`: then it is given back, or undead.

        Asked again while it is being given back, it changes nothing: each pass of the placement asks. A seat that is
        being established gives up at once: what its hook waits for may take minutes.
        """
        if mode is ReleaseMode.FENCED:
            self._fenced = True
        elif self._letting_go:
            return
        self._letting_go = True
        if self.lease is not None and not self.established:
            self._lost = True
            if self._establishing is not None:
                self._establishing.cancel()
        self._steps.begin("release", lambda: self._release(mode, reason))

    async def renew(self) -> None:
        """Extend the lease; what comes of it is told to the node, or ends in a release of its own."""
        lease, asked_at_s = self.lease, self._now_s()
        if lease is None:
            return
        try:
            async with asyncio.timeout(self._may_take_s()):
                renewed = await self._around.leases.renew(lease, ttl_s=self._around.config.ttl_s)
        except (Unavailable, TimeoutError) as error:
            await self._unproven(lease, str(error) or "no answer in time")
            return
        if self.lease is not lease:
            return
        if renewed is None:
            _log.warning("seat_lease_lost", seat=self.handle, epoch=lease.epoch)
            self._lose()
            return
        self.lease, self.renewed_at_s = renewed, asked_at_s
        if self.established and not self.undead and self._around.may_claim():
            await self._around.hooks.on_proven(self.handle)

    def _may_take_s(self) -> float | None:
        """How long a renew may take: no other seat's must wait for an answer that does not come."""
        if math.isinf(self.left_s):
            return None
        return min(max(self.left_s, 0.0), self._around.config.answer_within_s)

    def retry(self) -> None:
        """Try an undead seat's teardown again; its lease goes the moment that one succeeds (S-045)."""
        # One at a time: a teardown that hangs would gather retries behind it.
        if self.undead and self._steps.is_done:
            self._steps.begin("retry", self._retry)

    async def _claim(self, answer: asyncio.Future[Lease | ClaimRefused | None], still_fits: StillFits | None) -> None:
        taken: Lease | ClaimRefused | None = None
        try:
            taken = await self._taken(still_fits)
        finally:
            if not answer.done():
                answer.set_result(taken)
        if isinstance(taken, Lease):
            await self._establish(taken)

    async def _taken(self, still_fits: StillFits | None) -> Lease | ClaimRefused | None:
        if self.lease is not None or self.undead or not self._around.may_claim():
            return None
        asked_at_s = self._now_s()
        try:
            answer = await self._around.leases.claim(
                seat_resource(self.handle),
                owner=self._around.config.owner,
                ttl_s=self._around.config.ttl_s,
                preferred=self._around.config.node_id,
            )
        except Unavailable as error:
            _log.warning("seat_claim_unknown", seat=self.handle, error=str(error))
            return None
        if isinstance(answer, ClaimRefused):
            return answer
        # Nobody made room with a seat that lapsed, or that nobody ever had: those need no second look.
        fits = answer.after_lapse or still_fits is None or await still_fits(self.handle)
        if not fits or not self._around.may_claim():
            await self._give_back(answer)
            return None
        _log.info("seat_claimed", seat=self.handle, epoch=answer.epoch)
        self.lease, self.renewed_at_s, self._lost, self._fenced = answer, asked_at_s, False, False
        return answer

    async def _establish(self, lease: Lease) -> None:
        self._establishing = self._around.tasks.start(f"establish {self.handle}", self._acquired(lease))
        try:
            await asyncio.wait((self._establishing,))
        finally:
            self._establishing.cancel()
            self._establishing = None
        if self._lost:
            await self._release(ReleaseMode.FENCED, "not_established")
            return
        self.established = True
        _log.info("seat_attached", seat=self.handle, epoch=lease.epoch)
        self._around.hooks.on_established(self.handle)

    async def _acquired(self, lease: Lease) -> None:
        try:
            await self._around.hooks.on_acquire(self.handle, lease)
        except (CrewletError, OSError) as error:
            _log.warning("seat_establish_failed", seat=self.handle, error=str(error))
            self._lost = True
        except asyncio.CancelledError:
            self._lost = True
            raise
        except Exception:  # noqa: BLE001 - supervisor: one seat's fault must not end the claims of all
            _log.exception("seat_establish_broke", seat=self.handle)
            self._lost = True

    async def _unproven(self, lease: Lease, why: str) -> None:
        _log.warning("seat_renew_unknown", seat=self.handle, error=why)
        if self.lease is not lease or self.undead:
            return
        if self.left_s <= 0:
            self._lose()
            return
        await self._around.hooks.on_unproven(self.handle)

    def _lose(self) -> None:
        """The lease is gone, or must be taken for gone; nobody waits for the release, other seats have renews due."""
        self._fenced = True
        # A release that waits for a running turn must not: a peer may have begun.
        self._teardown.hurry()
        if self.undead:
            self.lease = None
        elif self.established:
            self._steps.begin("lose", lambda: self._release(ReleaseMode.FENCED, "lease_lost"))
        else:
            # Whoever establishes it gives it up: two must not act on one seat.
            self._lost = True

    async def _release(self, mode: ReleaseMode, reason: str) -> None:
        lease = self.lease
        try:
            if lease is None or self.undead:
                return
            self.established = False
            if not await self._teardown.run(mode):
                return
            self.lease = None
            await self._give_back(lease)
        finally:
            self._letting_go = False
        _log.info("seat_detached", seat=self.handle, epoch=lease.epoch, mode=str(mode), reason=reason)

    async def _retry(self) -> None:
        if not self.undead:
            return
        if not await self._teardown.retry():
            return
        lease, self.lease = self.lease, None
        if lease is not None:
            await self._give_back(lease)

    async def _give_back(self, lease: Lease) -> None:
        try:
            await self._around.leases.release(lease)
        except Unavailable as error:
            _log.warning("seat_give_back_unknown", seat=self.handle, error=str(error))
        await self._around.on_given_back()

    def _now_s(self) -> float:
        return self._around.clock.elapsed_s()
