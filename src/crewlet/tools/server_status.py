"""How a node's tool servers stand, in the words of its status: one row for each configured server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["ServerStatus", "by_server"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """``started`` and ``failed`` count instances (a shared server has one, another one for each seat that has it).

    ``tools`` is the number of one instance. ``error`` is one instance's reason, at most 240 bytes, and ``seat`` whose
    instance that is: empty for a shared one.
    """

    name: str
    shared: bool
    started: int = 0
    failed: int = 0
    tools: int = 0
    error: str = ""
    seat: str = ""


def by_server(instances: Iterable[ServerStatus]) -> list[ServerStatus]:
    """The rows of all instances, one for each server, by name."""
    rows: dict[str, ServerStatus] = {}
    for instance in instances:
        row = rows.get(instance.name)
        rows[instance.name] = instance if row is None else _with(row, instance)
    return [rows[name] for name in sorted(rows)]


def _with(row: ServerStatus, instance: ServerStatus) -> ServerStatus:
    told = row if row.error else instance
    return replace(
        row,
        started=row.started + instance.started,
        failed=row.failed + instance.failed,
        tools=max(row.tools, instance.tools),
        error=told.error,
        seat=told.seat,
    )
