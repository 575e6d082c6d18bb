"""A client of the log that passes everything on to a twin; each saboteur changes one thing about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from crewlet.backends.memory import MemoryLog, MemoryLogStream
from crewlet.queue import Log, Logged, LogRecord

__all__ = ["LogSaboteur", "SharedLogs", "planted_logs"]


@dataclass(slots=True)
class SharedLogs:
    """What the saboteurs of one case know together."""

    added: dict[str, list[Logged]] = field(default_factory=dict[str, list[Logged]])
    count: int = 0


class LogSaboteur:
    """Whatever a saboteur does not define goes to the twin. ``caught_by`` is the promise that must find it out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    def __init__(self, twin: MemoryLog, shared: SharedLogs) -> None:
        self.twin = twin
        self.shared = shared

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the twin's verb, whatever it is
        """The twin's own verb."""
        return getattr(self.twin, name)

    @property
    def stream(self) -> MemoryLogStream:
        """What is behind the twin."""
        return self.twin.stream

    async def append_anyway(self, seat: str, records: Sequence[LogRecord]) -> int:
        """Add on top of whatever stands."""
        return await self.twin.append(seat, records, expected=self.stream.last(seat))


def planted_logs(kind: type[LogSaboteur]) -> Callable[[MemoryLog], Log]:
    """What turns each twin of one case into a saboteur of this kind."""
    shared = SharedLogs()
    return lambda twin: cast("Log", kind(twin, shared))
