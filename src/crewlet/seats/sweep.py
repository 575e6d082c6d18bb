"""One placement pass: look at the fleet, give back what is too much, claim what is missing (S1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import structlog

from crewlet.base.errors import Unavailable
from crewlet.base.tasks import each_at_once
from crewlet.coordination import Leases, resource_member
from crewlet.seats.claims import Claims
from crewlet.seats.hooks import ReleaseMode
from crewlet.seats.host_config import HostConfig
from crewlet.seats.ledgers import Ledgers
from crewlet.seats.placement import FleetNode, Pass, PlacedSeat, plan_pass
from crewlet.seats.presence import NodeRow, unmanned_roles
from crewlet.seats.roster import Roster

__all__ = ["Sweep"]

_log = structlog.get_logger(__name__)


class Sweep:
    """The passes of this node. ``nodes`` and ``unplaceable`` are what the last one saw."""

    def __init__(self, leases: Leases, config: HostConfig, ledgers: Ledgers) -> None:
        self._leases = leases
        self._config = config
        self._ledgers = ledgers
        self._unmanned: tuple[str, ...] = ()
        self.nodes: tuple[NodeRow, ...] = ()
        self.unplaceable: tuple[PlacedSeat, ...] = ()

    async def run(self) -> bool:
        """One pass; whether the seats held here changed. An unreadable roster concludes nothing (S-205)."""
        try:
            roster = await Roster.read(self._leases, self._config)
            if not roster.counts_me:
                return False
            plan = await self._plan(roster)
        except Unavailable as error:
            _log.warning("seat_sweep_unknown", error=str(error))
            return False
        self.nodes = roster.rows
        self._tell(plan)
        released = self._give_back(plan)
        claimed = await self._claim(plan)
        return bool(released or claimed)

    async def claim_all(self) -> None:
        """Give back what left the company, then claim every seat at once: for a node that is alone."""
        handles = [seat.handle for seat in self._ledgers.company().seats]
        self._give_back_gone({each.handle for each in self._ledgers.all_kept() if each.established} - {*handles})

        async def claim(handle: str) -> None:
            kept = self._ledgers.kept(handle)
            await kept.claim()
            await kept.settled()

        missing = [handle for handle in handles if not self._ledgers.kept(handle).held]
        await each_at_once(missing, claim, at_once=self._config.establish_at_once)

    def seats_counted(self) -> int:
        """The seats held here, or not proven to have let go, that some live node may run (S-206)."""
        company, unplaceable = self._ledgers.company().placement_of, {seat.handle for seat in self.unplaceable}
        kept = [each for each in self._ledgers.all_kept() if each.held or each.undead]
        return sum(each.handle in company and each.handle not in unplaceable for each in kept)

    async def _plan(self, roster: Roster) -> Pass:
        me = roster.me(withdrawn=self._ledgers.withdrawn(), seats_held=self.seats_counted())
        nodes = [*roster.peers, me]
        first = self._planned(nodes, me, hints={})
        if not first.claims:
            # Hints only order claims, and cost a walk of every seat that ever was (C-052).
            return first
        mine = self._config.node_id
        every = await self._leases.hints("seat")
        hints = {resource_member(hint.resource): mine for hint in every if hint.preferred == mine}
        return self._planned(nodes, me, hints=hints)

    def _planned(self, nodes: Sequence[FleetNode], me: FleetNode, *, hints: dict[str, str]) -> Pass:
        kept = self._ledgers.all_kept()
        return plan_pass(
            self._ledgers.company(),
            nodes,
            me,
            held=[each.handle for each in kept if each.held],
            stuck=[each.handle for each in kept if each.undead],
            hints=hints,
        )

    def _tell(self, plan: Pass) -> None:
        room = sum(count for count, _ in plan.claims)
        _log.debug("seat_sweep", held=self.seats_counted(), room=room, full=plan.fleet_full, nodes=len(self.nodes))
        before, self._unmanned = self._unmanned, unmanned_roles(self.nodes)
        for role in {*self._unmanned} - {*before}:
            _log.warning("fleet_role_unmanned", role=role, remedy="start a node that has it")
        for role in {*before} - {*self._unmanned}:
            _log.info("fleet_role_manned", role=role)
        if plan.unplaceable and plan.unplaceable != self.unplaceable:
            _log.warning("seats_unplaceable", seats=[seat.handle for seat in plan.unplaceable])
        self.unplaceable = plan.unplaceable

    def _give_back(self, plan: Pass) -> int:
        reasons = {
            **dict.fromkeys(plan.releases, "unserviceable" if self._ledgers.withdrawn() else "rebalance"),
            **dict.fromkeys(plan.misplaced, "placement_moved"),
        }
        for handle, reason in reasons.items():
            # Nobody waits: a running turn may take minutes to end, and the next pass is due.
            self._ledgers.kept(handle).release(ReleaseMode.VOLUNTARY, reason)
        self._give_back_gone(plan.gone)
        return len({*reasons, *plan.gone})

    def _give_back_gone(self, handles: Iterable[str]) -> None:
        for kept in map(self._ledgers.kept, sorted(handles)):
            if not kept.letting_go:
                _log.info("seat_released_role_gone", seat=kept.handle)
            kept.release(ReleaseMode.VOLUNTARY, "role_gone")

    async def _claim(self, plan: Pass) -> int:
        if not plan.claims:
            return 0
        if withheld := self._ledgers.withheld():
            _log.debug("seat_claims_withheld", reason=withheld)
            return 0
        claims = Claims(self._leases, self._config, self._ledgers)
        await claims.take(plan.claims)
        return claims.taken
