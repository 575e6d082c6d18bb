"""Budget lanes of process incarnations that are gone: a day after their presence lapsed they go too."""

from __future__ import annotations

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.fence import Fence
from crewlet.coordination import Budgets, Leases

__all__ = ["LaneSweep"]

_PRESENCE = "node"


class LaneSweep:
    """One tick after another of it. An incarnation is an owner of leases, ``{node}:{random}``; no turn's id is.

    Since when one is gone is known to whoever sweeps alone: a sweep that another node takes over begins its day anew,
    which the eight days after which every lane goes put an end to.
    """

    def __init__(self, budgets: Budgets, leases: Leases, clock: Clock) -> None:
        self._budgets = budgets
        self._leases = leases
        self._clock = clock
        self._gone_since_s: dict[str, float] = {}

    async def run(self, _: Fence) -> None:
        """Take away what is due. Raises ``Unavailable``: where nobody says who is here, nobody is gone."""
        here = {lease.owner for lease in await self._leases.held(_PRESENCE)}
        now_s = self._clock.elapsed_s()
        seen: dict[str, float] = {}

        def is_over(lane: str) -> bool:
            if ":" not in lane or lane in here:
                return False
            seen[lane] = self._gone_since_s.get(lane, now_s)
            return now_s - seen[lane] >= limits.BUDGET_INCARNATION_LANES_S

        await self._budgets.remove_lanes(is_over)
        # What no record has any more need not be remembered.
        self._gone_since_s = seen
