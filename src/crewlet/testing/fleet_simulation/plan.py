"""How large a simulated fleet is and how bad its hour: everything but the chance."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crewlet.base import limits
from crewlet.seats import PlacedSeat, Placement
from crewlet.seats.placement import ANYWHERE

__all__ = ["FULL", "QUARTER", "SPECIAL", "FleetPlan"]

SPECIAL = Placement(labels=(("zone", "special"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """``pinned`` seats ask for a label that every fourth node carries; the others run anywhere.

    ``troubles``: how many befall the fleet, up to ``trouble_every_s`` apart. ``mails_a_s``: how many seats are asked to
    begin a turn in a second. ``updated``: how many nodes the rolling update restarts at the end. ``drift``: how far a
    node's clock may run off the store's, of each second; as far as the engine bears it where nothing is said.
    ``from_rest``: how likely the troubles begin only once the fleet is at rest. ``hardships``: how likely each of two
    long ones follows, that pinned seats have no home and that an older build stays. ``each_in_turn``: no trouble comes
    again before each other has. ``started_within_s``: over how long a time the nodes start. Where all start at once,
    they beat at once for ever, and ten thousand writes in one moment are more than a watch keeps.
    ``gate_idle_s``: for how long a node that claims nothing goes on following every write.
    """

    nodes: int = 8
    seats: int = 80
    pinned: int = 8
    troubles: int = 24
    trouble_every_s: float = 30.0
    mails_a_s: float = 4.0
    updated: int = 8
    ttl_s: float = limits.LEASE_TTL_S
    drift: float | None = None
    from_rest: float = 0.5
    hardships: float = 0.5
    each_in_turn: bool = False
    started_within_s: float = 0.0
    gate_idle_s: float = limits.GATE_VIEW_IDLE_S

    def company(self) -> tuple[PlacedSeat, ...]:
        """The seats, those that are pinned last."""
        free = self.seats - self.pinned
        return tuple(PlacedSeat(f"s{number}", SPECIAL if number >= free else ANYWHERE) for number in range(self.seats))

    def labels(self, number: int) -> dict[str, str]:
        """The labels of node ``number``."""
        return {"zone": "special"} if self.is_special(number) else {}

    def is_special(self, number: int) -> bool:
        """Whether node ``number`` may run the pinned seats."""
        return number % 4 == 0

    @property
    def rest_max_s(self) -> float:
        """By when a fleet that is well is at rest.

        What is held by nobody is free after a TTL; the claims of a cold start follow, at least four a pass and node;
        and a node that came late gets what its peers give back, two a pass each.
        """
        passes = self.seats / max(self.nodes * limits.SEAT_RELEASES_PER_SWEEP, 1) + self.seats / self.nodes
        return 2 * self.ttl_s + 60.0 + 2 * passes * limits.SEAT_SWEEP_EVERY_S


FULL = FleetPlan(
    nodes=100,
    seats=10_000,
    pinned=500,
    troubles=11,
    trouble_every_s=10.0,
    mails_a_s=20.0,
    updated=2,
    from_rest=1.0,
    hardships=0.0,
    each_in_turn=True,
    started_within_s=12.0,
    gate_idle_s=10.0,
)
"""The full size: a hundred nodes and ten thousand seats, from cold to balanced; then each trouble once."""

QUARTER = replace(FULL, nodes=25, seats=2_500, pinned=125)
"""The same hour at a quarter of the size, which takes a fraction of the time."""
