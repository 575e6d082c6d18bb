"""What this node says about itself on its presence lease, with every heartbeat (S0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crewlet import __version__
from crewlet.base.fence import Posture
from crewlet.node.member_standing import MemberStanding
from crewlet.tools import ServerStatus

__all__ = ["NodeStatusSource"]


@dataclass(slots=True, kw_only=True)
class NodeStatusSource:
    """Asked with every heartbeat; must not wait. ``draining`` is set by the node when its drain begins.

    ``member`` says how the node's member of the brokers' cluster stands; ``None`` where it has none.
    """

    in_flight: Callable[[], int]
    posture: Posture
    tool_servers: Callable[[], list[ServerStatus]]
    started_at: datetime
    broker: str
    member: Callable[[], MemberStanding | None] = lambda: None
    draining: bool = False

    def __call__(self) -> Mapping[str, Any]:
        """The status as it goes on the lease: no row for a tool server means that none was started (C-194)."""
        return {
            "in_flight": self.in_flight(),
            "draining": self.draining,
            "posture": self.posture.name,
            "started_at": self.started_at.isoformat(),
            "version": __version__,
            "broker": self.broker,
            "mcp": [_row(server) for server in self.tool_servers()],
            **_member(self.member()),
        }


def _member(standing: MemberStanding | None) -> dict[str, Any]:
    return {} if standing is None else {"member": str(standing.state), "member_error": standing.why}


def _row(server: ServerStatus) -> dict[str, Any]:
    return {
        "name": server.name,
        "shared": server.shared,
        "started": server.started,
        "failed": server.failed,
        "tools": server.tools,
        "error": server.error,
        "seat": server.seat,
    }
