"""The broker of this node as a member of the brokers' cluster, for whoever watches it."""

from __future__ import annotations

from pathlib import Path

from crewlet.backends.nats import EmbeddedBroker, MemberHealth, look_at_member
from crewlet.base import limits
from crewlet.base.ids import Ids
from crewlet.node.disk_room import has_room

__all__ = ["EmbeddedMember"]


class EmbeddedMember:
    """``member`` is what the others know it by. It has room where its disk has ``room_min_bytes`` free."""

    def __init__(
        self, broker: EmbeddedBroker, member: str, ids: Ids, *, room_min_bytes: int = limits.MEMBER_ROOM_MIN_BYTES
    ) -> None:
        self._broker = broker
        self._member = member
        self._ids = ids
        self._room_min_bytes = room_min_bytes

    @property
    def directory(self) -> Path | None:
        """Where it keeps what it stores."""
        return self._broker.directory

    async def health(self) -> MemberHealth:
        """How it stands by its own word. Raises ``Unavailable``."""
        return await look_at_member(
            self._broker.urls, seed=self._broker.overseer_seed, member=self._member, ids=self._ids
        )

    async def has_room(self) -> bool:
        """Whether its disk has room."""
        return await has_room(self._broker.directory, at_least_bytes=self._room_min_bytes)

    async def restart(self) -> None:
        """End the program; it is started again as after a crash."""
        await self._broker.restart()
