"""What a bucket's leader says: the only source of single reads, of the index and of the store's time (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from crewlet.backends.nats.bucket_identity import BucketIdentity
from crewlet.backends.nats.bucket_in_force import BucketInForce
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import STREAM_NOT_FOUND, ApiError, StoredMessage, StreamInfo
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination import Revision, StoreClock, StoreTime

__all__ = ["BucketLeader"]

_T = TypeVar("_T")


class BucketLeader:
    """Reads of one bucket that nobody but its leader answers; each raises ``Unavailable`` where there is none.

    A leader that was cut off from its peers answers from its own copy until it notices, about ten seconds later: what
    is read through a node on its side can be that old (C-024). Nothing that is written there lands.
    """

    def __init__(self, jetstream: JetStream, bucket: BucketInForce, clock: Clock) -> None:
        self.jetstream = jetstream
        self.bucket = bucket
        self.identity = BucketIdentity(bucket)
        self.clock = StoreClock(clock)
        self._own_clock = clock
        self._links = 0
        self._confirmed_link = 0
        self._confirmed_s = -limits.BUCKET_CONFIRMED_EVERY_S
        jetstream.wire.on_disconnected(self._link_lost)

    async def sure(self) -> None:
        """Return if the stream is the one that was opened, asked once after each new link. Raises ``Unavailable``."""
        self.identity.check()
        if self._confirmed_link != self._links:
            await self.info()

    async def last(self, key: str) -> StoredMessage | None:
        """The last message of ``key``, a marker too, or ``None``."""
        found = await self._last(self.bucket.subject(key))
        if found is None and asyncio.get_running_loop().time() - self._confirmed_s >= limits.BUCKET_CONFIRMED_EVERY_S:
            # A stream that was lost and made anew would say the same.
            await self.info()
        return found

    async def newest(self) -> Revision:
        """The revision of the newest message of the bucket, a marker's included; 0 where it holds none."""
        newest = (await self.info()).state.last_seq
        if newest == 0 or await self.at(newest) is not None:
            return Revision(newest)
        # What came last has gone since.
        return await self.newest_under(">")

    async def newest_under(self, pattern: str) -> Revision:
        """The same of the keys under a pattern. It takes the broker longer the more keys there are."""
        found = await self._last(self.bucket.subject(pattern))
        return Revision(0 if found is None else found.seq)

    async def at(self, revision: int) -> StoredMessage | None:
        """The message at ``revision``, or ``None``."""
        await self.sure()
        return await self._said(self.jetstream.message(self.bucket.stream, revision))

    async def info(self, *, subjects_filter: str = "", offset: int = 0) -> StreamInfo:
        """The stream, with the subjects under a filter where one is given.

        Refused where no leader answered: during an election each member speaks from its own copy (C-023).
        """
        sent_s, link = self._own_clock.elapsed_s(), self._links
        asked = self.jetstream.stream_info(self.bucket.stream, subjects_filter=subjects_filter, offset=offset)
        info = await self._said(asked)
        if info is None:
            # A bucket that is gone says nothing about what it held.
            self.identity.saw_nothing()
            raise Unavailable(f"the bucket {self.bucket.name} is gone")
        if not info.led:
            raise Unavailable(f"the bucket {self.bucket.name} has no leader now")
        self.identity.saw_creation(info.created)
        self._confirmed_link, self._confirmed_s = link, asyncio.get_running_loop().time()
        if info.ts is not None:
            self.clock.observe(info.ts, sent_s=sent_s)
        return info

    async def purge(self, key: str, *, through: Revision) -> int:
        """Take away the messages of ``key`` through a revision; what was written since stays. Returns how many."""
        await self.sure()
        subject = self.bucket.subject(key)
        return await self._said(self.jetstream.stream_purge(self.bucket.stream, subject=subject, up_to_seq=through + 1))

    async def time(self) -> StoreTime:
        """The store's clock now, asked for where no answer told it lately."""
        now = self.clock.now()
        if now is None:
            await self.info()
            now = self.clock.now()
        if now is None:
            raise Unavailable(f"the bucket {self.bucket.name}: the broker does not say what time it is")
        return now

    async def _last(self, subject: str) -> StoredMessage | None:
        await self.sure()
        return await self._said(self.jetstream.last_message(self.bucket.stream, subject))

    def _link_lost(self) -> None:
        self._links += 1

    async def _said(self, asked: Awaitable[_T]) -> _T:
        try:
            return await asked
        except ApiError as error:
            if error.err_code == STREAM_NOT_FOUND:
                self.identity.saw_nothing()
            # No refusal says anything about what is stored: not knowing is not absence.
            raise Unavailable(str(error)) from error
