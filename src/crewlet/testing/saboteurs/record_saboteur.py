"""A client of the record store that passes everything on to a twin; each saboteur changes one thing about it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import Change, Record, RecordStore, Revision, Watch

__all__ = ["RecordSaboteur", "Shared", "WatchFault", "WatchSaboteur", "planted_records"]


@dataclass(slots=True)
class Shared:
    """What the saboteurs of one case know together."""

    clients: list[RecordSaboteur] = field(default_factory=list["RecordSaboteur"])
    removed: dict[str, Revision] = field(default_factory=dict[str, Revision])
    seen: dict[str, Record] = field(default_factory=dict[str, Record])
    listed: dict[str, list[Record]] = field(default_factory=dict[str, list[Record]])
    count: int = 0


class RecordSaboteur:
    """Whatever a saboteur does not define goes to the twin. ``caught_by`` is the promise that must find it out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    def __init__(self, twin: MemoryRecordStore, shared: Shared) -> None:
        self.twin = twin
        self.shared = shared
        shared.clients.append(self)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the twin's verb, whatever it is
        """The twin's own verb."""
        return getattr(self.twin, name)

    @property
    def bucket(self) -> MemoryBucket:
        """What is behind the twin."""
        return self.twin.bucket


class WatchFault:
    """A watch that passes everything on to the twin's."""

    def __init__(self, twin: Watch, client: RecordSaboteur) -> None:
        self.twin = twin
        self.client = client

    @property
    def answer(self) -> Sequence[Record]:
        """The twin's answer."""
        return self.twin.answer

    @property
    def position(self) -> Revision:
        """The twin's position."""
        return self.twin.position

    async def next(self) -> Change:
        """The twin's next change."""
        return await self.twin.next()


class WatchSaboteur(RecordSaboteur):
    """A saboteur of watches: each is wrapped in a ``fault``."""

    fault: ClassVar[type[WatchFault]]

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[WatchFault]:
        """The twin's watch with a fault."""
        async with self.twin.watch(*patterns) as watch:
            yield self.fault(watch, self)


def planted_records(kind: type[RecordSaboteur]) -> Callable[[MemoryRecordStore], RecordStore]:
    """What turns each twin of one case into a saboteur of this kind."""
    shared = Shared()
    return lambda twin: cast("RecordStore", kind(twin, shared))
