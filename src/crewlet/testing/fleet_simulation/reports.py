"""What the nodes of a simulated fleet say in their logs, as far as a rule asks for it to be said."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from crewlet.testing.fleet_simulation.process import current_process

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

    @contextmanager
    def heard(self) -> Generator[None]:
        """Lines go here and nowhere else while this lasts."""
        before = structlog.get_config()
        structlog.configure(
            processors=[self._hear],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            cache_logger_on_first_use=False,
        )
        try:
            yield
        finally:
            structlog.configure(**before)

    def _hear(self, _logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        process = current_process()
        if process is not None:
            if line.get("exc_info") is True:
                line["exc_info"] = repr(sys.exception())
            self.last[process.owner, str(line.pop("event"))] = Said(self.now_s(), line)
        raise structlog.DropEvent
