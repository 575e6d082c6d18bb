"""Which chat threads each seat follows: the next reply may be read by any node (S0)."""

from __future__ import annotations

from datetime import datetime

import structlog
from msgspec.structs import replace

from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, list_stored

__all__ = ["Follow", "Follows", "asserted"]

_log = structlog.get_logger(__name__)


class Follow(SharedRecord, frozen=True, kw_only=True):
    """That one seat follows one thread, since when, and what happened last that made it so."""

    backend: str
    seat: str
    channel: str
    thread: str
    since: datetime
    asserted_at: datetime
    reason: str


def asserted(standing: Follow | None, wanted: Follow) -> Follow:
    """The follow with one more reason for it; it is as old as it was, and never dated back."""
    if standing is None:
        return wanted
    return replace(standing, asserted_at=max(standing.asserted_at, wanted.asserted_at), reason=wanted.reason)


class Follows:
    """One record for each (backend, seat, channel, thread); the bucket's age counts from the last reason to follow.

    Reading raises ``Unavailable``: the message that asks waits in its queue. Writing fails open: a follow that could
    not be written is logged and costs at most one reply that mentions nobody.

    A key is ``{backend}.{channel}.{thread}.{seat}``, so that whoever follows a thread, and what one seat follows in a
    channel, is one listing that meets nothing else; whether one seat follows one thread is one read.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def follow(self, backend: str, seat: str, channel: str, thread: str, *, reason: str) -> bool:
        """The seat follows the thread, for the bucket's age from now; whether that is written down."""
        now = self._clock.now()
        wanted = Follow(
            backend=backend, seat=seat, channel=channel, thread=thread, since=now, asserted_at=now, reason=reason
        )
        key = _key(backend, channel, thread, seat)
        try:
            await change_stored(self._store, Follow, key, lambda standing: asserted(standing, wanted))
        except Unavailable as error:
            _log.warning("follow_not_written", backend=backend, seat=seat, channel=channel, error=str(error))
            return False
        return True

    async def is_following(self, backend: str, seat: str, channel: str, thread: str) -> bool:
        """Whether the seat follows the thread. Raises ``Unavailable``."""
        return await self._store.get(_key(backend, channel, thread, seat)) is not None

    async def followers(self, backend: str, channel: str, thread: str) -> frozenset[str]:
        """The seats that follow the thread. Raises ``Unavailable``."""
        return frozenset(each.seat for each in await self._listed(_pattern(backend, channel, thread, None)))

    async def followed(self, backend: str, seat: str, channel: str) -> list[Follow]:
        """What the seat follows in a channel, the longest followed first. Raises ``Unavailable``."""
        follows = await self._listed(_pattern(backend, channel, None, seat))
        return sorted(follows, key=lambda each: (each.since, each.thread))

    async def _listed(self, pattern: str) -> list[Follow]:
        return [each.record for each in await list_stored(self._store, Follow, pattern)]


def _key(backend: str, channel: str, thread: str, seat: str) -> str:
    return ".".join(key_token(part) for part in (backend, channel, thread, seat))


def _pattern(*parts: str | None) -> str:
    return ".".join("*" if part is None else key_token(part) for part in parts)
