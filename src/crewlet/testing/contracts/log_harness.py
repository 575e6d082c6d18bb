"""What the log's suite needs of a backend.

A promise takes ``logs: LogHarness`` and asks it for clients, each as another process would have it::

    async def test_what_one_node_appends_another_reads(self, logs: LogHarness) -> None:
        here, there = await logs.client(), await logs.client()

        at = await here.append(logs.seat, [LogRecord("r1", b"1")], expected=0)

        assert await there.read(logs.seat) == [Logged(at, "r1", b"1")]

An append of more than ``PART_BYTES`` is in parts, and is tried again for ``APPEND_S``.

Bind a suite to a backend with a fixture ``logs`` that yields ``MemoryLogs()``, ``JetStreamLogs(one_broker)`` or
``ClusterLogs(three_members)``, each an async context manager, and an empty subclass for each of its classes.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import ClassVar, Final, Literal

from crewlet.queue import Log
from crewlet.testing.contracts.contract import Capability

__all__ = ["APPEND_S", "PART_BYTES", "ROOM_BYTES", "Fragment", "LogHarness"]

PART_BYTES: Final = 1000
APPEND_S: Final = 0.8
ROOM_BYTES: Final = 2600
"""What a log that is all but full still takes."""

Fragment = Literal["beginning", "end", "garbage", "unreadable"]
"""The first part of an append of two; the second without the first; bytes that are no part; a whole one of nonsense."""

_CASES: Final = itertools.count(1)


class LogHarness(ABC):
    """One case's view of one backend. Its seats are its own, so that cases may share a broker without meeting."""

    backend: ClassVar[str]
    absent: ClassVar[frozenset[Capability]] = frozenset()

    def __init__(self) -> None:
        self._case = next(_CASES)
        self.seat = f"one-{self._case}"
        self.other = f"other-{self._case}"

    @abstractmethod
    async def client(self) -> Log:
        """One more client, on a link of its own."""

    @abstractmethod
    async def cut(self, *clients: Log) -> None:
        """These clients reach nothing from now on, and know it."""

    @abstractmethod
    async def mend(self, *clients: Log) -> None:
        """Undo :meth:`cut`; returns once the links stand."""

    @abstractmethod
    def lose_reply(self, client: Log) -> None:
        """The client's next write lands and its answer is lost. Whoever looks afterwards gets an answer."""

    @abstractmethod
    def cut_after_write(self, client: Log) -> None:
        """The client's next write lands, and its link is :meth:`cut` before the answer comes back."""

    @abstractmethod
    def withhold(self, client: Log) -> None:
        """The client's next write does not arrive before :meth:`deliver`; its caller hears nothing in time."""

    @abstractmethod
    async def deliver(self, client: Log) -> None:
        """What was withheld of the client's writes reaches the log now."""

    @abstractmethod
    async def leave(self, seat: str, fragment: Fragment) -> int:
        """Put on top of a seat's log what no append leaves there whole; returns where it lies."""

    @abstractmethod
    async def fill(self) -> None:
        """From now on all logs together take ``ROOM_BYTES`` more, or a little less."""

    @abstractmethod
    async def make_room(self) -> None:
        """Undo :meth:`fill`."""

    @abstractmethod
    async def lose(self) -> None:
        """All logs are lost, as with a broker's memory, and made anew."""

    @abstractmethod
    async def disturb(self) -> None:
        """Whatever this backend must survive without anybody noticing happens now; nothing where there is no such."""
