"""What the processes of a simulated company say in their logs, as far as a rule asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from typing import Any, Final

from crewlet.testing.simulated import SimulatedProcess, heard_by

__all__ = ["Reports"]

FAULTS: Final = frozenset(
    {
        "task_failed",
        "seat_heartbeat_failed",
        "seat_establish_broke",
        "seat_release_broke",
        "dispatch_panicked",
        "turn_phase_panicked",
        "turn_burial_failed",
        "tool_call_panicked",
        "notifications_not_merged",
        "batch_options_failed",
        "publish_listener_failed",
        "seat_pauses_lost",
        "budget_park_watch_lost",
        "journal_unreadable",
    }
)
_HANDLER_FAILED: Final = "handler_failed"
_OF_OURS: Final = ("Unavailable", "Fenced", "SeatShareMissing", "LogFull")


class Reports:
    """Every warning and worse that a process said, by its name."""

    def __init__(self) -> None:
        self.said: defaultdict[str, list[MutableMapping[str, Any]]] = defaultdict(list[MutableMapping[str, Any]])

    def broken(self) -> list[str]:
        """What was said of faults of the engine's own, which no trouble excuses."""
        faults = [f"{name}: {line}" for name in FAULTS for line in self.said.get(name, ())]
        handlers = [
            f"{_HANDLER_FAILED}: {line}"
            for line in self.said.get(_HANDLER_FAILED, ())
            if not str(line.get("error", "")).startswith(_OF_OURS)
        ]
        return [*faults, *handlers]

    def named(self, name: str, field: str) -> set[str]:
        """The values of one field over all lines of that name."""
        found: set[str] = set()
        for line in self.said.get(name, ()):
            value = line.get(field, ())
            found |= {value} if isinstance(value, str) else {*map(str, value)}
        return found

    def heard(self) -> AbstractContextManager[None]:
        """Lines go here and nowhere else while this lasts."""
        return heard_by(self._hear)

    def _hear(self, process: SimulatedProcess | None, name: str, line: MutableMapping[str, Any]) -> None:
        line["process"] = "" if process is None else process.owner
        self.said[name].append(line)
