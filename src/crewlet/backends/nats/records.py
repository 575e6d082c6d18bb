"""The record store on JetStream: one bucket is a stream that keeps the last message of each subject (S0, D3).

The layout is the one that NATS's own key-value tools read. Every read is answered by the stream's leader, never by a
direct get, which any replica may answer from before a write that has been acknowledged.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import WRONG_LAST_SEQUENCE, ApiError, StoredMessage
from crewlet.backends.nats.wire import NotDone
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.base.ids import Ids
from crewlet.coordination import Record, Revision, StoreClock, StoreTime, Watch, checked_key
from crewlet.topics import bucket, bucket_stream, bucket_subject

__all__ = ["BucketInForce", "NatsRecordStore"]

_OPERATION: Final = "KV-Operation"
_DELETE: Final = "DEL"
_REMOVAL_REASON: Final = "Nats-Marker-Reason"
_WRITE_ID: Final = "Crewlet-Write"
_READ_BACK_PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketInForce:
    """One bucket as the broker holds it: the slot's name, the age of its records, and when it was made."""

    slot: str
    age_s: float | None = None
    created_at: datetime | None = None

    @property
    def stream(self) -> str:
        """The stream behind it."""
        return bucket_stream(bucket(self.slot))

    def subject(self, key: str) -> str:
        """What one key is written on, or a pattern of keys."""
        return bucket_subject(bucket(self.slot), key)


class NatsRecordStore:
    """One bucket; see ``RecordStore`` for what each verb promises. Open it with ``open_bucket``."""

    def __init__(self, jetstream: JetStream, bucket: BucketInForce, *, ids: Ids, clock: Clock) -> None:
        self._jetstream = jetstream
        self._bucket = bucket
        self._stream = bucket.stream
        self._ids = ids
        self._clock = clock
        self._store_clock = StoreClock(clock)

    @property
    def name(self) -> str:
        """The slot's name."""
        return self._bucket.slot

    @property
    def age_s(self) -> float | None:
        """The age in force."""
        return self._bucket.age_s

    async def get(self, key: str) -> Record | None:
        """The live record as the leader holds it, or ``None``."""
        return _live(key, await self._last(key))

    async def create(self, key: str, value: bytes) -> Record:
        """Write only where the key is not live; over a removal marker, only over that very marker."""
        expected = 0
        for _ in range(limits.RECORD_CREATE_ATTEMPTS_MAX):
            try:
                return await self._write(key, value, expected)
            except Conflict:
                found = await self._last(key)
                live = _live(key, found)
                if live is not None:
                    raise Conflict(key, expected=0, current=live.revision) from None
                expected = 0 if found is None else found.seq
        raise Unavailable(f"{key!r}: removed and written again under every attempt to create it")

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """Write only over ``expected``."""
        try:
            return await self._write(key, value, expected)
        except Conflict:
            raise Conflict(key, expected=expected, current=await self._current(key)) from None

    async def delete(self, key: str, *, expected: Revision) -> None:
        """Leave a removal marker over ``expected``; an absent key is no error."""
        try:
            await self._publish(key, b"", expected, {_OPERATION: _DELETE})
        except Conflict:
            live = await self.get(key)
            if live is not None:
                raise Conflict(key, expected=expected, current=live.revision) from None
        except NotDone:
            raise
        except Unavailable as lost:
            if _live(key, await self._read_back(key, lost)) is not None:
                raise

    async def list(self, pattern: str) -> list[Record]:
        """Every record under ``pattern``."""
        raise Unavailable(f"{self.name}: listings are not served yet")

    def watch(self, *patterns: str) -> AbstractAsyncContextManager[Watch]:
        """A listing, then its changes."""
        raise Unavailable(f"{self.name}: watches are not served yet")

    async def last_revision(self) -> Revision:
        """The newest message's revision at the leader; 0 for none."""
        try:
            newest = await self._jetstream.last_message(self._stream, self._bucket.subject(">"))
        except ApiError as error:
            raise Unavailable(str(error)) from error
        return Revision(0 if newest is None else newest.seq)

    async def purge_markers(self, *, before: datetime) -> int:
        """Take away old markers."""
        raise Unavailable(f"{self.name}: markers are not swept yet")

    async def time(self) -> StoreTime:
        """What the store's clock says now."""
        raise Unavailable(f"{self.name}: the clock is not asked yet")

    async def _write(self, key: str, value: bytes, expected: int) -> Record:
        """Write and return the record with the store's own time. Raises ``Conflict`` without a current revision."""
        write_id = self._ids.hex(16)
        try:
            seq = await self._publish(key, value, expected, {_WRITE_ID: write_id})
            found = await self._read_seq(seq)
        except (Conflict, NotDone):
            raise
        except Unavailable as lost:
            found = await self._read_back(key, lost)
        # Equal bytes are not enough: two claimants may well write the same.
        if found is None or found.headers.get(_WRITE_ID) != write_id:
            raise Unavailable(f"{key!r}: whether the write over revision {expected} landed is not known")
        return _record(key, found)

    async def _current(self, key: str) -> int | None:
        """The live revision, 0 for none, ``None`` where the leader does not say."""
        try:
            live = await self.get(key)
        except Unavailable:
            return None
        return 0 if live is None else live.revision

    async def _publish(self, key: str, value: bytes, expected: int, headers: dict[str, str]) -> int:
        subject = self._bucket.subject(checked_key(key))
        try:
            ack = await self._jetstream.publish(subject, value, expected_last_subject_seq=expected, headers=headers)
        except ApiError as error:
            if error.err_code in WRONG_LAST_SEQUENCE:
                raise Conflict(key, expected=expected) from error
            raise Unavailable(str(error)) from error
        return ack.seq

    async def _last(self, key: str) -> StoredMessage | None:
        subject = self._bucket.subject(checked_key(key))
        try:
            return await self._jetstream.last_message(self._stream, subject)
        except ApiError as error:
            # A bucket that is gone says nothing about what it held: not knowing is not absence.
            raise Unavailable(str(error)) from error

    async def _read_seq(self, seq: int) -> StoredMessage | None:
        try:
            return await self._jetstream.message(self._stream, seq)
        except ApiError as error:
            raise Unavailable(str(error)) from error

    async def _read_back(self, key: str, lost: Unavailable) -> StoredMessage | None:
        """What the leader holds after a write whose answer was lost; waits a while for the link to come back."""
        try:
            async with asyncio.timeout(limits.BROKER_REQUEST_TIMEOUT_S):
                while True:
                    try:
                        return await self._last(key)
                    except Unavailable:
                        await asyncio.sleep(_READ_BACK_PAUSE_S)
        except TimeoutError:
            raise lost from None


def _live(key: str, message: StoredMessage | None) -> Record | None:
    if message is None or _OPERATION in message.headers or _REMOVAL_REASON in message.headers:
        return None
    return _record(key, message)


def _record(key: str, message: StoredMessage) -> Record:
    return Record(key, message.data, Revision(message.seq), message.time)
