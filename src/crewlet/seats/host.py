"""Which seats this process holds: claims, renewals, admission by freshness, and letting go (S1).

It runs hooks that it knows nothing about. One node is the same code with nobody else there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.tasks import Tasks, each_at_once
from crewlet.coordination import Leases
from crewlet.seats.hooks import ReleaseMode, SeatHooks
from crewlet.seats.host_config import HostConfig
from crewlet.seats.ledgers import Ledgers
from crewlet.seats.pass_rhythm import PassRhythm
from crewlet.seats.placement import PlacedCompany, PlacedSeat
from crewlet.seats.presence import NodeRow, Presence
from crewlet.seats.seat_fence import SeatFence
from crewlet.seats.seat_keeping import Around, KeptSeat
from crewlet.seats.sweep import Sweep

__all__ = ["HEARTBEAT", "SWEEP", "Host"]

HEARTBEAT: Final = "heartbeat"
SWEEP: Final = "sweep"

_log = structlog.get_logger(__name__)


class Host:
    """The seats of this process. All methods belong to the event loop's thread.

    ``status``: what the node says of itself on its presence. ``withheld``: why it should claim nothing just now, empty
    where it may. ``beat``: called whenever a loop of the host has turned, with the loop's name.
    """

    def __init__(
        self,
        *,
        leases: Leases,
        hooks: SeatHooks,
        clock: Clock,
        config: HostConfig,
        status: Callable[[], Mapping[str, Any]] = dict[str, Any],
        withheld: Callable[[], str] = str,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._config = config
        self._status = status
        self._beat = beat
        self._kept: dict[str, KeptSeat] = {}
        self._company = PlacedCompany.of((), config.node_id)
        self._draining = False
        self._withdrawn = ""
        self._renew_now = asyncio.Event()
        self._rhythm = PassRhythm(clock, config.sweep_every_s)
        self._tasks = Tasks("seats")
        self._steps = Tasks("seat_steps")
        self._presence = Presence(leases, clock, config, self._said)
        self._around = Around(
            leases=leases,
            hooks=hooks,
            clock=clock,
            config=config,
            tasks=self._steps,
            may_claim=lambda: not self._draining and not self._withdrawn,
            on_given_back=self._advertise,
        )
        self._sweep = Sweep(
            leases,
            config,
            Ledgers(
                company=lambda: self._company,
                all_kept=lambda: [*self._kept.values()],
                kept=self._keeping,
                withdrawn=lambda: bool(self._withdrawn),
                may_claim=self._around.may_claim,
                withheld=withheld,
            ),
        )

    def held(self) -> tuple[str, ...]:
        """The handles of the seats established here, in the company's order."""
        return tuple(handle for handle in self._handles() if handle in self._kept and self._kept[handle].established)

    def missing(self) -> tuple[str, ...]:
        """The handles of the seats that this node should run and does not; none where it has peers to run them."""
        if len(self._sweep.nodes) > 1:
            return ()
        held = frozenset(self.held())
        return tuple(handle for handle in self._handles() if handle not in held)

    @property
    def trouble(self) -> str:
        """What to tell people where this node's own lease is another's or not renewed; empty where it is."""
        return self._presence.trouble

    def unproven(self) -> dict[str, float]:
        """The seats whose teardown could not be proven, and for how many seconds (S-214)."""
        return {handle: each.undead_for_s for handle, each in self._kept.items() if each.undead}

    def nodes(self) -> tuple[NodeRow, ...]:
        """The live nodes as the last pass saw them; empty where this process is alone."""
        return self._sweep.nodes

    def unplaceable(self) -> tuple[PlacedSeat, ...]:
        """The seats that no live node may run, as the last pass saw them."""
        return self._sweep.unplaceable

    def epoch_of(self, handle: str) -> int | None:
        """The epoch this process holds a seat under, or ``None``."""
        kept = self._kept.get(handle)
        return kept.lease.epoch if kept is not None and kept.held and kept.lease is not None else None

    def grant_of(self, handle: str) -> int | None:
        """The epoch that work admitted earlier may go on under, or ``None``."""
        kept = self._kept.get(handle)
        return None if kept is None else kept.grant

    def may_start(self, handle: str) -> int | None:
        """The epoch to run a turn under, or ``None``: not held, not yet established, draining, or not proven lately.

        A grant is fresh while its last successful renew began at most one heartbeat interval ago, on a clock that
        counts sleep (S-053); renews start early enough that a healthy seat never reads as stale. One that does (the
        machine slept, the process was stopped) is renewed at once: what it refuses here waits for no heartbeat.
        """
        kept = self._kept.get(handle)
        if kept is None or kept.lease is None or not kept.established or self._draining:
            return None
        age_s = self._clock.elapsed_s() - kept.renewed_at_s
        if age_s > self._config.heartbeat_s:
            _log.warning("seat_admission_stale", seat=handle, age_s=round(age_s, 3))
            self._renew_now.set()
            return None
        return kept.lease.epoch

    def fence(self, handle: str, epoch: int) -> SeatFence:
        """The fence of a grant, to hand down with the work."""
        return SeatFence(self.grant_of, handle, epoch)

    async def start(self, seats: Iterable[PlacedSeat]) -> None:
        """Say that this node is there, claim what a first pass claims, and keep both going; returns after that pass."""
        self._company = PlacedCompany.of(seats, self._config.node_id)
        await self._presence.keep()
        # Beside the claims, never behind them: a seat may take minutes to be established, and no other may go stale.
        self._tasks.start("heartbeat", self._keep_beating())
        await self._supervised(SWEEP, self._pass)
        for kept in [*self._kept.values()]:
            await kept.settled()
        self._tasks.start("sweep", self._keep_sweeping())

    def apply(self, seats: Iterable[PlacedSeat], anew: Collection[str] = ()) -> None:
        """The company's seats are these now; where that changes anything, a pass comes early (S-026).

        Seats in ``anew`` are given back as their running turns end, and established again by whoever claims them.
        """
        wanted = PlacedCompany.of(seats, self._config.node_id)
        if wanted.seats != self._company.seats:
            self._company = wanted
            self._rhythm.ask()
        for kept in [each for handle, each in self._kept.items() if handle in anew and each.held]:
            kept.release(ReleaseMode.VOLUNTARY, "applied")
            self._tasks.start(f"anew {kept.handle}", self._look_once_settled(kept))

    async def _look_once_settled(self, kept: KeptSeat) -> None:
        await kept.settled()
        self._rhythm.ask()

    def withdraw(self, reason: str) -> None:
        """Give every seat back, and say so to the peers, until :meth:`serve_again` (S-030)."""
        if not self._withdrawn:
            _log.warning("seats_shed_unserviceable", reason=reason)
        self._withdrawn = reason
        self._rhythm.ask()
        self._renew_now.set()

    def serve_again(self) -> None:
        """Take part in placement again."""
        self._withdrawn = ""
        self._renew_now.set()

    async def release_all(self) -> None:
        """Give presence up, then every seat as it falls idle; nothing is claimed any more, and the host's tasks end.

        Until then the seats that still work are renewed: a turn may take longer than a lease lasts (S-195).
        """
        self._draining = True
        await self._presence.give_up()
        for kept in [*self._kept.values()]:
            kept.release(ReleaseMode.VOLUNTARY, "drain")
        for kept in [*self._kept.values()]:
            await kept.settled()
        await self._tasks.close()
        await self._steps.close()

    def drain(self) -> None:
        """Admit no further turn and claim nothing, also from a pass under way; what is held stays until released."""
        self._draining = True

    async def _keep_beating(self) -> None:
        began_s = self._clock.elapsed_s()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._until_next_beat_s(began_s)):
                    await self._renew_now.wait()
            self._renew_now.clear()
            began_s = self._clock.elapsed_s()
            await self._supervised(HEARTBEAT, self._heartbeat)

    def _until_next_beat_s(self, began_s: float) -> float:
        """From the start of the last one, whatever that took: what waits for an answer must not go stale over it.

        And no later than the moment at which a seat must be taken for lost: a peer may begin then.
        """
        due_s = began_s + self._config.renew_every_s - self._clock.elapsed_s()
        held = [kept.left_s for kept in self._kept.values() if kept.held and kept.grant is not None]
        # A timer may be early by a hair: what is left then is waited for once, and not looked at over and over.
        return max(min([due_s, *held]), limits.SEAT_BEAT_MIN_S)

    async def _heartbeat(self) -> None:
        async def renew(kept: KeptSeat) -> None:
            await self._supervised(HEARTBEAT, kept.renew)

        seats = [kept for kept in self._kept.values() if kept.lease is not None]
        await asyncio.gather(self._keep_presence(), each_at_once(seats, renew, at_once=limits.RENEWS_AT_ONCE))
        for kept in [*self._kept.values()]:
            kept.retry()

    async def _keep_presence(self) -> None:
        """Waited for as long as an answer may take: a claim that is called off still takes back what it wrote."""
        keeping = self._tasks.start("presence", self._presence.keep())
        try:
            await asyncio.wait((keeping,), timeout=self._config.answer_within_s)
        except asyncio.CancelledError:
            keeping.cancel()
            raise

    async def _keep_sweeping(self) -> None:
        self._rhythm.begin()
        while True:
            await self._rhythm.due()
            await self._supervised(SWEEP, self._pass)

    async def _pass(self) -> None:
        if self._draining:
            return
        if self._config.alone:
            await self._sweep.claim_all()
        elif await self._sweep.run():
            await self._advertise()
        for handle in [handle for handle, kept in self._kept.items() if kept.idle]:
            del self._kept[handle]

    async def _advertise(self) -> None:
        """Tell the peers at once how many seats are held here: room must not wait for a heartbeat (S-207)."""
        if self._presence.stands and not self._config.alone:
            await self._presence.keep()

    async def _supervised(self, loop: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:  # noqa: BLE001 - supervisor: a dead heartbeat is a node whose seats are all deaf
            _log.exception("seat_heartbeat_failed", loop=loop)
        self._beat(loop)

    def _keeping(self, handle: str) -> KeptSeat:
        return self._kept.setdefault(handle, KeptSeat(handle, self._around))

    def _handles(self) -> list[str]:
        return [*self._company.placement_of]

    def _said(self) -> dict[str, Any]:
        return {
            "roles": [*self._config.roles],
            "labels": dict(self._config.labels),
            "seats_held": self._sweep.seats_counted(),
            "withdrawn": bool(self._withdrawn),
            "status": dict(self._status()),
        }
