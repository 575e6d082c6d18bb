"""What each node says of the configuration that it applied; a node that stops saying so leaves the view (S0)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, list_stored

__all__ = ["NodeStatus", "NodeStatuses", "reported"]

_CLASS: Final = "node"


class NodeStatus(SharedRecord, frozen=True, kw_only=True):
    """One node's last report. ``epoch`` and ``revision_id`` are what it applied: 0 and empty where nothing yet.

    ``status`` is ok, error or degraded, and ``posture`` the node's own word for how it serves; words of another build
    are kept as they are. ``error`` says why the last apply failed.
    """

    node: str
    epoch: int
    revision_id: str
    status: str
    posture: str
    reported_at: datetime
    error: str = ""


def reported(standing: NodeStatus | None, status: NodeStatus) -> NodeStatus:
    """``status`` as it follows ``standing``, its error cut to ``limits.STATUS_ERROR_MAX_BYTES`` of whole characters."""
    error = status.error.encode()[: limits.STATUS_ERROR_MAX_BYTES].decode(errors="ignore")
    unknown = {} if standing is None else standing.unknown
    return replace(status, error=error, unknown={**unknown, **status.unknown})


class NodeStatuses:
    """The statuses of the fleet, one record a node.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. A report that could not be written
    is made again on the next tick, and a view of the fleet that could not be read is no view, never a smaller one.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def report(self, status: NodeStatus) -> None:
        """The node's record is ``status``; it lives for the bucket's age from now."""
        key = f"{_CLASS}.{key_token(status.node)}"
        await change_stored(self._store, NodeStatus, key, lambda standing: reported(standing, status))

    async def all(self) -> list[NodeStatus]:
        """Every node that reported within the bucket's age, by name."""
        statuses = await list_stored(self._store, NodeStatus, f"{_CLASS}.*")
        return sorted((each.record for each in statuses), key=lambda each: each.node)
