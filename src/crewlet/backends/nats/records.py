"""The record store on JetStream: one bucket is a stream that keeps the last message of each subject (S0, D3).

The layout is the one that NATS's own key-value tools read. Every read is answered by the stream's leader, never by a
direct get, which any replica may answer from before a write that has been acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from crewlet.backends.nats.bucket_identity import BucketReplaced
from crewlet.backends.nats.bucket_in_force import BucketInForce
from crewlet.backends.nats.bucket_leader import BucketLeader
from crewlet.backends.nats.bucket_listing import certified
from crewlet.backends.nats.bucket_messages import OPERATION, REMOVED, Shown, record_of
from crewlet.backends.nats.bucket_pass import BucketPass
from crewlet.backends.nats.bucket_patterns import checked_patterns
from crewlet.backends.nats.bucket_watch import BucketWatch
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import WRONG_LAST_SEQUENCE, ApiError, StoredMessage, StreamConfig
from crewlet.backends.nats.marker_sweep import sweep_markers
from crewlet.backends.nats.wire import NotDone
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.coordination import Record, Revision, StoreTime, checked_key

__all__ = ["NatsRecordStore"]

_WRITE_ID: Final = "Crewlet-Write"
_READ_BACK_PAUSE_S: Final = 0.05


class NatsRecordStore:
    """One bucket; see ``RecordStore`` for what each verb promises. Open it with ``open_bucket``."""

    def __init__(self, jetstream: JetStream, bucket: BucketInForce, *, ids: Ids, clock: Clock) -> None:
        self._jetstream = jetstream
        self._bucket = bucket
        self._ids = ids
        self._clock = clock
        self._leader = BucketLeader(jetstream, bucket, clock)
        self._tasks = Tasks(f"records:{bucket.slot}")

    @property
    def name(self) -> str:
        """The slot's name."""
        return self._bucket.slot

    @property
    def age_s(self) -> float | None:
        """The age in force."""
        return self._bucket.age_s

    @property
    def is_lost(self) -> bool:
        """Whether the bucket was seen to be gone or another one: it answers nothing then."""
        return self._leader.identity.is_lost

    async def remake(self, config: StreamConfig) -> bool:
        """The bucket is there, made anew where it was lost, which it says; returns whether it was.

        For streams that nobody expects to outlive their broker. Raises ``Unavailable``.
        """
        try:
            info = await self._jetstream.stream_info(config.name) or await self._jetstream.stream_create(config)
        except ApiError as error:
            raise Unavailable(str(error)) from error
        if info.created == self._leader.identity.created_at:
            return False
        self._leader.identity.begin_again(info.created)
        return True

    async def get(self, key: str) -> Record | None:
        """The live record as the leader holds it, or ``None``."""
        return record_of(key, await self._leader.last(checked_key(key)))

    async def create(self, key: str, value: bytes) -> Record:
        """Write only where the key is not live; over a removal marker, only over that very marker."""
        expected = 0
        for _ in range(limits.RECORD_CREATE_ATTEMPTS_MAX):
            try:
                return await self._write(key, value, expected)
            except Conflict:
                found = await self._leader.last(key)
                live = record_of(key, found)
                if live is not None:
                    raise Conflict(key, expected=0, current=live.revision) from None
                expected = 0 if found is None else found.seq
        raise Unavailable(f"{key!r}: removed and written again under every attempt to create it")

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """Write only over ``expected``."""
        try:
            return await self._write(key, value, expected)
        except Conflict:
            raise await self._conflict(key, expected) from None

    async def delete(self, key: str, *, expected: Revision) -> None:
        """Leave a removal marker over ``expected``; an absent key is no error."""
        try:
            await self._publish(key, b"", expected, {OPERATION: REMOVED})
        except Conflict:
            conflict = await self._conflict(key, expected)
            if conflict.current != 0:
                raise conflict from None
        except (NotDone, BucketReplaced):
            raise
        except Unavailable as lost:
            if record_of(key, await self._read_back(key, lost)) is not None:
                raise

    async def list(self, pattern: str) -> list[Record]:
        """Every record under ``pattern`` that was live throughout."""
        patterns = checked_patterns([pattern])
        await self._leader.sure()
        shown: dict[str, Shown] = {}

        def on_shown(item: Shown) -> None:
            shown[item.key] = item

        walk = self._new_pass(patterns, on_shown)
        try:
            answer = await certified(self._leader, walk, patterns, lambda: {**shown})
        finally:
            await walk.close()
        return [*answer.records]

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[BucketWatch]:
        """A listing, then its changes from the very same pass."""
        needed = checked_patterns(patterns)
        await self._leader.sure()
        make_pass = partial(self._new_pass, needed, heartbeat_s=limits.WATCH_HEARTBEAT_S)
        watch = BucketWatch(self._leader, needed, make_pass)
        try:
            await watch.open()
            yield watch
        finally:
            await watch.close()

    async def last_revision(self) -> Revision:
        """The newest message's revision at the leader; 0 for none."""
        return await self._leader.newest()

    async def purge_markers(self, *, before: datetime) -> int:
        """Take away the removal markers written before this, and nothing that was written since."""
        await self._leader.sure()
        return await sweep_markers(self._leader, partial(self._new_pass, [">"], headers_only=True), before)

    async def time(self) -> StoreTime:
        """What the store's clock says now."""
        return await self._leader.time()

    def _new_pass(
        self,
        patterns: Sequence[str],
        on_shown: Callable[[Shown], None],
        *,
        heartbeat_s: float | None = None,
        headers_only: bool = False,
    ) -> BucketPass:
        return BucketPass(
            self._jetstream,
            self._bucket,
            patterns,
            on_shown,
            name=f"pass-{self._ids.hex(16)}",
            tasks=self._tasks,
            heartbeat_s=heartbeat_s or limits.LISTING_HEARTBEAT_S,
            headers_only=headers_only,
        )

    async def _write(self, key: str, value: bytes, expected: int) -> Record:
        """Write and return the record with the store's own time. Raises ``Conflict`` without a current revision."""
        write_id, sent_s = self._ids.hex(16), self._clock.elapsed_s()
        try:
            revision = await self._publish(key, value, expected, {_WRITE_ID: write_id})
        except (Conflict, NotDone, BucketReplaced):
            raise
        except Unavailable as lost:
            return await self._landed(key, write_id, lost)
        try:
            found = await self._leader.at(revision) if self._bucket.dated else None
            written_at = await self._time_since(sent_s) if found is None else found.time
        except BucketReplaced:
            raise
        except Unavailable as lost:
            # The write stands whatever becomes of the reading: to its caller nothing must look as if it did not.
            return await self._landed(key, write_id, lost)
        if found is not None:
            self._leader.clock.observe(written_at, sent_s=sent_s)
        return Record(key, value, Revision(revision), written_at)

    async def _landed(self, key: str, write_id: str, lost: Unavailable) -> Record:
        """The record that the leader holds, if it is from this very write. Raises ``Unavailable``."""
        found = await self._read_back(key, lost)
        # Equal bytes are not enough: two claimants may well write the same.
        if found is None or found.headers.get(_WRITE_ID) != write_id:
            raise Unavailable(f"{key!r}: whether this write of it landed is not known")
        return Record(key, found.data, Revision(found.seq), found.time)

    async def _time_since(self, sent_s: float) -> datetime:
        """The earliest that the store's clock can have read at that moment of ours.

        It stands for the time of a write that another has replaced before it could be read, which nobody reads again,
        and of one that nobody asks the time of.
        """
        now = await self._leader.time()
        return now.earliest - timedelta(seconds=self._clock.elapsed_s() - sent_s)

    async def _conflict(self, key: str, expected: int) -> Conflict:
        """The conflict to raise: with 0 where no record is live, with nothing where the leader does not say.

        Raises ``Unavailable`` where the stream was made anew: what was expected then stood in another one.
        """
        current: int | None = None
        try:
            live = await self.get(key)
            current = 0 if live is None else live.revision
            if current < expected:
                await self._leader.info()
        except Unavailable:
            self._leader.identity.check()
        return Conflict(key, expected=expected, current=current)

    async def _publish(self, key: str, value: bytes, expected: int, headers: dict[str, str]) -> int:
        subject = self._bucket.subject(checked_key(key))
        try:
            await self._leader.sure()
        except BucketReplaced:
            raise
        except Unavailable as unsure:
            raise NotDone(str(unsure)) from unsure
        known = self._leader.identity.newest
        try:
            ack = await self._jetstream.publish(subject, value, expected_last_subject_seq=expected, headers=headers)
        except ApiError as error:
            if error.err_code in WRONG_LAST_SEQUENCE:
                raise Conflict(key, expected=expected) from error
            raise Unavailable(str(error)) from error
        self._leader.identity.saw_revision(ack.seq, behind=known)
        return ack.seq

    async def _read_back(self, key: str, lost: Unavailable) -> StoredMessage | None:
        """What the leader holds after a write whose answer was lost; waits a while for the link to come back."""
        try:
            async with asyncio.timeout(limits.BROKER_REQUEST_TIMEOUT_S):
                while True:
                    try:
                        return await self._leader.last(key)
                    except BucketReplaced:
                        raise
                    except Unavailable:
                        await asyncio.sleep(_READ_BACK_PAUSE_S)
        except TimeoutError:
            raise Unavailable(f"{key!r}: whether this write of it landed is not known: {lost}") from lost
