"""Names for the kinds of id, and the source that new ones come from."""

from __future__ import annotations

import os
import random
from typing import Final, NewType, Protocol
from uuid import UUID

__all__ = ["AgentId", "Handle", "Ids", "NodeId", "RandomIds", "TurnId", "WorkKey"]

_POOL_BYTES: Final = 4096

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


class _SystemDigits:
    """The operating system's randomness as hexadecimal digits, fetched by the block: a turn needs dozens of ids."""

    def __init__(self) -> None:
        self._pool = ""
        self._used = 0

    def take(self, digits: int) -> str:
        """So many digits that nobody was given before."""
        used = self._used + digits
        if used > len(self._pool):
            self._pool, used = os.urandom(max(_POOL_BYTES, digits)).hex(), digits
        self._used = used
        return self._pool[used - digits : used]


class RandomIds:
    """Ids from a random source: the operating system's unless a seeded one is given."""

    def __init__(self, source: random.Random | None = None) -> None:
        self._source = source
        self._system = _SystemDigits()

    def uuid(self) -> UUID:
        """A fresh random UUID (version 4)."""
        if self._source is None:
            return UUID(int=int(self._system.take(32), 16), version=4)
        return UUID(int=self._source.getrandbits(128), version=4)

    def hex(self, digits: int) -> str:
        """``digits`` fresh random hexadecimal digits."""
        if self._source is None:
            return self._system.take(digits)
        return f"{self._source.getrandbits(4 * digits):0{digits}x}"
