"""The live nodes as their presences say, read by one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from crewlet.coordination import Leases
from crewlet.seats.host_config import HostConfig
from crewlet.seats.placement import FleetNode
from crewlet.seats.presence import NodeRow, node_row

__all__ = ["Roster"]


@dataclass(frozen=True, slots=True)
class Roster:
    """``rows`` as they were read by the process of ``config``."""

    rows: tuple[NodeRow, ...]
    config: HostConfig

    @classmethod
    async def read(cls, leases: Leases, config: HostConfig) -> Self:
        """Every node whose presence is live. Raises ``Unavailable``."""
        return cls(tuple(node_row(lease) for lease in await leases.held("node")), config)

    @property
    def counts_me(self) -> bool:
        """Whether the peers count this process: where they do not, what it claimed would be a peer's share too."""
        return any(row.node_id == self.config.node_id and row.lease.owner == self.config.owner for row in self.rows)

    @property
    def peers(self) -> list[FleetNode]:
        """Everybody else."""
        return [row.as_fleet_node() for row in self.rows if row.node_id != self.config.node_id]

    def me(self, *, withdrawn: bool, seats_held: int = 0) -> FleetNode:
        """This node as it knows itself, which its presence may be a beat behind."""
        return FleetNode(
            node_id=self.config.node_id,
            labels=self.config.labels,
            places_seats=self.config.places_seats,
            withdrawn=withdrawn,
            seats_held=seats_held,
        )
