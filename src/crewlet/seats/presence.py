"""The presence of nodes: one lease each, and on it what the node says about itself (S1, S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import structlog

from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.base.node_roles import NODE_ROLES
from crewlet.coordination import ClaimRefused, Lease, Leases
from crewlet.coordination.lease_names import node_resource, resource_member
from crewlet.seats.host_config import HostConfig
from crewlet.seats.placement import FleetNode

__all__ = ["NodeRow", "Presence", "node_row", "unmanned_roles"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One live node as its presence lease says. ``status`` is whatever it states; a field not there was not stated."""

    node_id: str
    lease: Lease
    roles: tuple[str, ...]
    labels: Mapping[str, str]
    seats_held: int = 0
    withdrawn: bool = False
    status: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_fleet_node(self) -> FleetNode:
        """What placement needs of it."""
        return FleetNode(
            node_id=self.node_id,
            labels=self.labels,
            places_seats="seats" in self.roles,
            withdrawn=self.withdrawn,
            seats_held=self.seats_held,
        )


def node_row(lease: Lease) -> NodeRow:
    """The node that a presence lease stands for; what cannot be understood counts as not stated (C-196, S-205)."""
    data = lease.data
    return NodeRow(
        node_id=resource_member(lease.resource),
        lease=lease,
        roles=tuple(str(role) for role in _of(list[object], data.get("roles"))),
        labels={str(key): str(value) for key, value in _of(dict[object, object], data.get("labels")).items()},
        seats_held=_count(data.get("seats_held")),
        withdrawn=data.get("withdrawn") is True,
        status={str(key): value for key, value in _of(dict[object, Any], data.get("status")).items()},
    )


def unmanned_roles(rows: Iterable[NodeRow]) -> tuple[str, ...]:
    """The roles that no live node has."""
    manned = {role for row in rows for role in row.roles}
    return tuple(role for role in NODE_ROLES if role not in manned)


class Presence:
    """This node's own presence: claimed, renewed with every heartbeat, given up first in a drain (S-195).

    ``said`` is asked at each renew for what the node says about itself. Another incarnation under the same node id
    keeps this one out: that is said, and this node places no seats until the other is gone (trap 25).
    """

    def __init__(self, leases: Leases, clock: Clock, config: HostConfig, said: Callable[[], Mapping[str, Any]]) -> None:
        self._leases = leases
        self._clock = clock
        self._config = config
        self._said = said
        self._lease: Lease | None = None
        self._given_up = False
        self._told_of = ""
        self._one_at_a_time = asyncio.Lock()
        self._answered_at_s = clock.elapsed_s()

    @property
    def stands(self) -> bool:
        """Whether peers count this node."""
        return self._lease is not None

    @property
    def trouble(self) -> str:
        """What to tell people: another process has this node's id, or the store was silent for two beats (trap 28).

        Empty where neither is so.
        """
        if self._told_of:
            return f"another process, {self._told_of}, runs under this node.id: no seat is placed here until it is gone"
        silent_s = self._clock.elapsed_s() - self._answered_at_s
        if self._given_up or silent_s <= 2 * self._config.heartbeat_s:
            return ""
        return f"leases have not been renewed for {silent_s:.0f} s: the coordination store does not answer"

    async def keep(self) -> None:
        """Claim or renew it, with what the node says now. An unreachable store is logged; the next beat tries again.

        Takes no longer than the store may take to answer, but for what a claim has to take back.
        """
        try:
            async with asyncio.timeout(self._config.answer_within_s), self._one_at_a_time:
                await self._renew_or_claim()
                self._answered_at_s = self._clock.elapsed_s()
        except (Unavailable, TimeoutError) as error:
            _log.warning("presence_unknown", node=self._config.node_id, error=str(error) or "no answer in time")

    async def give_up(self) -> None:
        """Stop counting in the fleet, for good."""
        async with self._one_at_a_time:
            self._given_up = True
            lease, self._lease = self._lease, None
            if lease is None:
                return
            try:
                await self._leases.release(lease)
            except Unavailable as error:
                _log.warning("presence_give_back_unknown", node=self._config.node_id, error=str(error))

    async def _renew_or_claim(self) -> None:
        if self._given_up:
            return
        if self._lease is not None:
            self._lease = await self._leases.renew(self._lease, ttl_s=self._config.ttl_s, data=self._said())
        if self._lease is None:
            self._take(
                await self._leases.claim(
                    node_resource(self._config.node_id),
                    owner=self._config.owner,
                    ttl_s=self._config.ttl_s,
                    preferred=self._config.node_id,
                    data=self._said(),
                )
            )

    def _take(self, answer: Lease | ClaimRefused) -> None:
        if isinstance(answer, Lease):
            self._lease, self._told_of = answer, ""
        elif answer.holder != self._told_of:
            self._told_of = answer.holder
            _log.error(
                "node_id_taken",
                node=self._config.node_id,
                holder=answer.holder,
                remedy="another process runs under this node.id: it places no seats until that one is gone",
            )


def _of(kind: type[Any], value: object) -> Any:  # noqa: ANN401 - a container of what was read from outside
    origin = cast("type[Any]", getattr(kind, "__origin__", kind))
    return value if isinstance(value, origin) else origin()


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
