"""What the nodes of a simulated fleet say in their logs, as far as a rule asks for it to be said."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from crewlet.testing.simulated import SimulatedProcess, heard_by

__all__ = ["Reports", "Said"]


_FAULTS = frozenset({"task_failed", "seat_heartbeat_failed", "seat_establish_broke", "seat_release_broke"})


@dataclass(frozen=True, slots=True)
class Said:
    """One line: when, and its fields."""

    at_s: float
    fields: MutableMapping[str, Any]


@dataclass(slots=True)
class Reports:
    """The last line of each name that each process said, warnings and worse alone."""

    now_s: Callable[[], float]
    last: dict[tuple[str, str], Said] = field(default_factory=dict[tuple[str, str], Said])

    def said(self, owner: str, name: str) -> Said | None:
        """The last time that a process said this."""
        return self.last.get((owner, name))

    def broken(self) -> list[str]:
        """What nodes said of faults of their own, which no trouble excuses."""
        return [
            f"{owner} says {name}: {said.fields.get('exc_info', said.fields)}"
            for (owner, name), said in self.last.items()
            if name in _FAULTS
        ]

    def heard(self) -> AbstractContextManager[None]:
        """Lines go here and nowhere else while this lasts."""
        return heard_by(self._hear)

    def _hear(self, process: SimulatedProcess | None, name: str, line: MutableMapping[str, Any]) -> None:
        if process is not None:
            self.last[process.owner, name] = Said(self.now_s(), line)
