"""Who this process is among the nodes, and the clocks it keeps its seats by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crewlet.base import limits
from crewlet.base.node_roles import NODE_ROLES

__all__ = ["HostConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """The node, and the host's clocks; ``ttl_s`` is the lease TTL in force, whoever set it (C-113).

    ``alone``: leases are this process's own, so nobody else can take a seat: shares and paces are for fleets, and every
    seat is claimed at once.
    """

    owner: str
    node_id: str
    roles: tuple[str, ...] = NODE_ROLES
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    ttl_s: float = limits.LEASE_TTL_S
    sweep_every_s: float = limits.SEAT_SWEEP_EVERY_S
    claims_per_sweep: int = limits.SEAT_CLAIMS_PER_SWEEP
    establish_at_once: int = limits.SEATS_ESTABLISHED_AT_ONCE
    alone: bool = False

    @property
    def heartbeat_s(self) -> float:
        """The heartbeat interval: a third of the TTL in force."""
        return self.ttl_s / 3

    @property
    def proven_s(self) -> float:
        """For how long a renew proves a lease by this node's clock, which may run slower than the store's."""
        return self.ttl_s * (1.0 - limits.STORE_CLOCK_DRIFT)

    @property
    def renew_every_s(self) -> float:
        """When a renew begins after the one before: early, so that a healthy grant never reads as stale."""
        return self.heartbeat_s * limits.RENEW_AT_FRACTION

    @property
    def answer_within_s(self) -> float:
        """How long a heartbeat waits for one answer of the store before it goes on without.

        A loop that waited longer would look wedged over a link that is only silent, where leases are short: the
        watchdog's threshold is one TTL, of which this is a third.
        """
        return self.heartbeat_s

    @property
    def places_seats(self) -> bool:
        """Whether this node runs seats at all."""
        return "seats" in self.roles
