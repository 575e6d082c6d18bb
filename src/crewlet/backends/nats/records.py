"""The record store on JetStream: one bucket is a stream that keeps the last message of each subject (S0, D3).

The layout is the one that NATS's own key-value tools read. Every read is answered by the stream's leader, never by a
direct get, which any replica may answer from before a write that has been acknowledged.
"""

from __future__ import annotations

import asyncio
from typing import Final

from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import WRONG_LAST_SEQUENCE, ApiError, StoredMessage
from crewlet.backends.nats.wire import NotDone
from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable
from crewlet.base.ids import Ids
from crewlet.coordination import Record, Revision, checked_key
from crewlet.topics import bucket_stream, bucket_subject

__all__ = ["NatsRecordStore"]

_OPERATION: Final = "KV-Operation"
_DELETE: Final = "DEL"
_REMOVAL_REASON: Final = "Nats-Marker-Reason"
_WRITE_ID: Final = "Crewlet-Write"
_READ_BACK_PAUSE_S: Final = 0.05


class NatsRecordStore:
    """One bucket; see ``RecordStore`` for what each verb promises. Open it with ``open_bucket``."""

    def __init__(self, jetstream: JetStream, bucket: str, ids: Ids) -> None:
        self._jetstream = jetstream
        self._bucket = bucket
        self._stream = bucket_stream(bucket)
        self._ids = ids

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
        subject = bucket_subject(self._bucket, checked_key(key))
        try:
            ack = await self._jetstream.publish(subject, value, expected_last_subject_seq=expected, headers=headers)
        except ApiError as error:
            if error.err_code in WRONG_LAST_SEQUENCE:
                raise Conflict(key, expected=expected) from error
            raise Unavailable(str(error)) from error
        return ack.seq

    async def _last(self, key: str) -> StoredMessage | None:
        subject = bucket_subject(self._bucket, checked_key(key))
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
