"""The broker of this node as a member of the brokers' cluster, for whoever watches it."""

from __future__ import annotations

from pathlib import Path

import structlog

from crewlet.backends.nats import EmbeddedBroker, JetStream, MemberHealth, look_at_copies, look_at_member
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.ids import Ids
from crewlet.node.disk_room import has_room

__all__ = ["EmbeddedMember"]

_log = structlog.get_logger(__name__)


class EmbeddedMember:
    """``member`` is what the others know it by, ``api`` the way to the streams through it.

    It has room where its disk has ``room_min_bytes`` free.
    """

    def __init__(
        self,
        broker: EmbeddedBroker,
        api: JetStream,
        member: str,
        ids: Ids,
        *,
        room_min_bytes: int = limits.MEMBER_ROOM_MIN_BYTES,
    ) -> None:
        self._broker = broker
        self._api = api
        self._member = member
        self._ids = ids
        self._room_min_bytes = room_min_bytes

    @property
    def directory(self) -> Path | None:
        """Where it keeps what it stores."""
        return self._broker.directory

    async def health(self) -> MemberHealth:
        """How it stands. Raises ``Unavailable`` where it does not say; nothing is known of its copies then."""
        broker = self._broker
        lacks = await look_at_member(broker.urls, seed=broker.overseer_seed, member=self._member, ids=self._ids)
        try:
            copies = await look_at_copies(self._api, self._member)
        except Unavailable as error:
            # No majority, or an election: what the member says of itself is all that there is.
            _log.debug("copies_unknown", member=self._member, error=str(error))
            return MemberHealth(lacks=lacks, others_whole=False)
        return MemberHealth(lacks=lacks, behind=copies.behind, others_whole=copies.others_whole)

    async def has_room(self) -> bool:
        """Whether its disk has room."""
        return await has_room(self._broker.directory, at_least_bytes=self._room_min_bytes)

    async def restart(self) -> None:
        """End the program; it is started again as after a crash."""
        await self._broker.restart()
