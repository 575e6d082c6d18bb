"""What one pass takes, seat by seat, until its room, its bound or the fleet's own change ends it (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, Lease, Leases, RefusalRule, resource_member
from crewlet.seats.host_config import HostConfig
from crewlet.seats.ledgers import Ledgers
from crewlet.seats.placement import allowances
from crewlet.seats.roster import Roster

__all__ = ["Claims"]

_log = structlog.get_logger(__name__)


class Claims:
    """The claims of one pass; for each pass a new one. ``taken``: how many were granted and kept."""

    def __init__(self, leases: Leases, config: HostConfig, ledgers: Ledgers) -> None:
        self._leases = leases
        self._config = config
        self._ledgers = ledgers
        self._refused = 0
        self._elsewhere: Collection[str] = ()
        self._is_over = False
        self.taken = 0

    async def take(self, claims: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Group by group, as many as there is room for in it."""
        for room, handles in claims:
            await self._take_of(handles, until=min(self.taken + room, self._config.claims_per_sweep))

    async def _take_of(self, handles: Sequence[str], *, until: int) -> None:
        for handle in handles:
            if self._is_over or self.taken >= until or not self._ledgers.may_claim():
                return
            if handle not in self._elsewhere:
                await self._try(handle)

    async def _try(self, handle: str) -> None:
        answer = await self._ledgers.kept(handle).claim(still_fits=self._still_fits)
        if isinstance(answer, Lease):
            self.taken += 1
        elif isinstance(answer, ClaimRefused):
            await self._note(answer)

    async def _note(self, refused: ClaimRefused) -> None:
        if refused.rule is RefusalRule.PROTOCOL:
            # Every other claim would be refused the same way (S-203).
            _log.warning("seat_claims_blocked_by_older_protocol", floor=refused.floor, holder=refused.holder)
            self._is_over = True
            return
        self._refused += 1
        if self._refused == limits.SEATS_REFUSED_UNLISTED_MAX:
            self._elsewhere = await self._known_held()

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

    async def _still_fits(self, handle: str) -> bool:
        """Whether a seat that was given back, and is leased to this node now, is within its share as the fleet is now.

        A peer may have given it back for a newcomer that this pass has not read of: kept here, it would be one too many
        and move once more. Nodes read after the claim have the newcomer among them, since the peer had read of it
        before it gave the seat back. What cannot be read concludes nothing (S-205): then the pass's own reading holds.
        """
        try:
            async with asyncio.timeout(self._config.answer_within_s):
                now = await Roster.read(self._leases, self._config)
        except (Unavailable, TimeoutError) as error:
            _log.warning("seat_second_look_unknown", seat=handle, error=str(error) or "no answer in time")
            return True
        if now.counts_me and self._has_room(handle, now):
            return True
        _log.info("seat_claim_outgrown", seat=handle, nodes=len(now.rows))
        # The rest of the plan is of a fleet that is no more; the next pass looks anew.
        self._is_over = True
        return False

    def _has_room(self, handle: str, now: Roster) -> bool:
        company, kept = self._ledgers.company(), self._ledgers.all_kept()
        placement = company.placement_of.get(handle)
        if placement is None:
            return False
        me = now.me(withdrawn=self._ledgers.withdrawn())
        stuck = sum(each.undead for each in kept)
        held = sum(each.held and company.placement_of.get(each.handle) == placement for each in kept)
        return held < allowances(company.groups, [*now.peers, me], me, stuck=stuck)[placement]
