"""One placement pass: look at the fleet, give back what is too much, claim what is missing (S1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import each_at_once
from crewlet.coordination import ClaimRefused, Lease, Leases, RefusalRule, resource_member
from crewlet.seats.hooks import ReleaseMode
from crewlet.seats.host_config import HostConfig
from crewlet.seats.placement import FleetNode, Pass, PlacedCompany, PlacedSeat, plan_pass
from crewlet.seats.presence import NodeRow, node_row, unmanned_roles
from crewlet.seats.seat_keeping import KeptSeat

__all__ = ["Ledgers", "Sweep"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledgers:
    """What a pass acts on.

    ``kept`` gives a seat's keeping, a new one where there is none. ``withheld`` is why not to claim, or empty.
    """

    company: Callable[[], PlacedCompany]
    all_kept: Callable[[], Sequence[KeptSeat]]
    kept: Callable[[str], KeptSeat]
    withdrawn: Callable[[], bool]
    may_claim: Callable[[], bool]
    withheld: Callable[[], str]


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
            rows = tuple(node_row(lease) for lease in await self._leases.held("node"))
            me = next((row for row in rows if row.node_id == self._config.node_id), None)
            if me is None or me.lease.owner != self._config.owner:
                # Nobody counts this node: what it claimed would be a peer's share too.
                return False
            plan = await self._plan(rows)
        except Unavailable as error:
            _log.warning("seat_sweep_unknown", error=str(error))
            return False
        self.nodes = rows
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

    async def _plan(self, rows: Sequence[NodeRow]) -> Pass:
        nodes = [row.as_fleet_node() for row in rows if row.node_id != self._config.node_id]
        me = self._me()
        first = self._planned([*nodes, me], me, hints={})
        if not first.claims:
            # Hints only order claims, and cost a walk of every seat that ever was (C-052).
            return first
        mine = self._config.node_id
        every = await self._leases.hints("seat")
        hints = {resource_member(hint.resource): mine for hint in every if hint.preferred == mine}
        return self._planned([*nodes, me], me, hints=hints)

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

    def _me(self) -> FleetNode:
        return FleetNode(
            node_id=self._config.node_id,
            labels=self._config.labels,
            places_seats=self._config.places_seats,
            withdrawn=self._ledgers.withdrawn(),
            seats_held=self.seats_counted(),
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

    async def _known_held(self) -> Collection[str]:
        """The seats whose claims would be refused as the store has it now.

        Asked one by one for thousands that peers hold, a node with room for two would not be done before its next pass
        is due.
        """
        try:
            return {resource_member(lease.resource) for lease in await self._leases.held("seat")}
        except Unavailable as error:
            # One of them may be beyond this build: then each answers for itself.
            _log.debug("seat_leases_unlisted", error=str(error))
            return ()

    async def _claim(self, plan: Pass) -> int:
        if not plan.claims:
            return 0
        if withheld := self._ledgers.withheld():
            _log.debug("seat_claims_withheld", reason=withheld)
            return 0
        claimed = refused = 0
        elsewhere: Collection[str] = ()
        for room, handles in plan.claims:
            taken = 0
            for handle in handles:
                if handle in elsewhere:
                    continue
                if taken >= room or claimed >= self._config.claims_per_sweep or not self._ledgers.may_claim():
                    break
                answer = await self._ledgers.kept(handle).claim()
                if isinstance(answer, ClaimRefused) and answer.rule is RefusalRule.PROTOCOL:
                    # Every other claim would be refused the same way (S-203).
                    _log.warning("seat_claims_blocked_by_older_protocol", floor=answer.floor, holder=answer.holder)
                    return claimed
                refused += isinstance(answer, ClaimRefused)
                if refused == limits.SEATS_REFUSED_UNLISTED_MAX:
                    elsewhere, refused = await self._known_held(), refused + 1
                if isinstance(answer, Lease):
                    taken, claimed = taken + 1, claimed + 1
        return claimed
