"""The log's suite on the twin: clients of one stream object, on a loop whose time jumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from crewlet.backends.memory import MemoryLog, MemoryLogStream, Piece
from crewlet.queue import Log, LogRecord
from crewlet.testing.contracts.log_harness import APPEND_S, PART_BYTES, ROOM_BYTES, Fragment, LogHarness
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["MemoryLogs"]


class MemoryLogs(LogHarness):
    """Twins on a stream object. ``sabotage`` plants a fault into each client as it is made."""

    backend: ClassVar[str] = "twin"

    def __init__(self, *, sabotage: Callable[[MemoryLog], Log] = lambda twin: twin) -> None:
        super().__init__()
        self._sabotage = sabotage
        self._twins: dict[Log, MemoryLog] = {}
        self.stream = MemoryLogStream(VirtualClock())

    async def __aenter__(self) -> Self:
        """Nothing has to be made first."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing stays."""

    async def client(self) -> Log:
        """A client of the stream object."""
        twin = MemoryLog(self.stream, append_s=APPEND_S, part_max_bytes=PART_BYTES)
        client = self._sabotage(twin)
        self._twins[client] = twin
        return client

    async def cut(self, *clients: Log) -> None:
        """The twins have links that can be cut."""
        for client in clients:
            self._twins[client].link.cut = True

    async def mend(self, *clients: Log) -> None:
        """They are whole again at once."""
        for client in clients:
            self._twins[client].link.cut = False

    def lose_reply(self, client: Log) -> None:
        """The link loses it."""
        self._twins[client].link.lose_reply()

    def cut_after_write(self, client: Log) -> None:
        """The link breaks between the two."""
        self._twins[client].link.cut_after_write()

    def withhold(self, client: Log) -> None:
        """The link keeps it."""
        self._twins[client].link.withhold()

    async def deliver(self, client: Log) -> None:
        """The link lets go of it."""
        self._twins[client].link.deliver()

    async def leave(self, seat: str, fragment: Fragment) -> int:
        """A piece of nobody's."""
        write = next(self.stream.writes)
        match fragment:
            case "beginning":
                piece = Piece(write, 1, 2, 1)
            case "end":
                piece = Piece(write, 2, 2, 1, records=[LogRecord("end", b"")])
            case "garbage" | "unreadable":
                piece = Piece(write, 0, 0, 1)
        return self.stream.keep(seat, piece)

    async def fill(self) -> None:
        """The stream gets as large as it is, and a little more."""
        self.stream.max_bytes = self.stream.size_bytes + ROOM_BYTES

    async def make_room(self) -> None:
        """It gets larger again."""
        self.stream.max_bytes += 1_000_000

    async def lose(self) -> None:
        """The stream forgets."""
        self.stream.lose()

    async def disturb(self) -> None:
        """There is nothing to survive."""
