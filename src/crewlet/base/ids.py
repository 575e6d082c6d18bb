"""Names for the kinds of id, and the source that new ones come from."""

from __future__ import annotations

import random
from typing import NewType, Protocol
from uuid import UUID

__all__ = ["AgentId", "Handle", "Ids", "NodeId", "RandomIds", "TurnId", "WorkKey"]

Handle = NewType("Handle", str)
"""A seat's identity in the company document; its mailbox, lease and memory are keyed on it."""
AgentId = NewType("AgentId", str)
"""uuid5 over the company's name and the seat's handle; the same on every node (E-052)."""
NodeId = NewType("NodeId", str)
TurnId = NewType("TurnId", str)
"""One execution of a turn; a second run of the same work has another."""
WorkKey = NewType("WorkKey", str)
"""One unit of work, derived from its constituent trigger ids; the same on each re-run. May be empty."""


class Ids(Protocol):
    """Where new ids come from."""

    def uuid(self) -> UUID:
        """A fresh random UUID (version 4)."""
        ...

    def hex(self, digits: int) -> str:
        """``digits`` fresh random hexadecimal digits."""
        ...


class RandomIds:
    """Ids from a random source: the operating system's unless a seeded one is given."""

    def __init__(self, source: random.Random | None = None) -> None:
        self._source = source or random.SystemRandom()

    def uuid(self) -> UUID:
        """A fresh random UUID (version 4)."""
        return UUID(int=self._source.getrandbits(128), version=4)

    def hex(self, digits: int) -> str:
        """``digits`` fresh random hexadecimal digits."""
        return f"{self._source.getrandbits(4 * digits):0{digits}x}"
