"""The dead letters on JetStream: one stream, read by sequence at its leader, the newest first."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

import structlog

from crewlet import topics
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import (
    STREAM_FULL,
    STREAM_NOT_FOUND,
    ApiError,
    StoredMessage,
    StreamInfo,
    full,
)
from crewlet.backends.nats.queue_dead_letters import (
    DELIVERIES_HEADER,
    GROUP_HEADER,
    REASON_HEADER,
    SEQUENCE_HEADER,
    STREAM_HEADER,
    TOPIC_HEADER,
)
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.events import Event, MalformedEvent, decode
from crewlet.queue import DeadLetter, DeadLetterPage, DeadLetters, Redrive, RedriveOutcome, Subscription

__all__ = ["DeadLetterBox"]

_log = structlog.get_logger(__name__)

_UNKNOWN: Final = "which dead letters there are is not known"

_NO_LETTER: Final = 2**63 - 1
"""A place that no letter will ever have."""

_ID_MAX_DIGITS: Final = 19
"""The broker counts in 64 bits; a longer number is none of its sequences."""


class DeadLetterBox(DeadLetters):
    """A letter's id is its place in the stream, so it is never given to another.

    Where the stream has copies, no absence is told before a majority of them has taken a word: a member that led until
    it was cut off, or that was just started, would say from its own copy that there is nothing.
    """

    def __init__(self, api: JetStream) -> None:
        self._api = api

    async def page(self, *, limit: int, before: str = "", pattern: str = "") -> DeadLetterPage:
        """Walk down the stream; see ``DeadLetters``. Looks at ``limits.DEAD_LETTERS_SCANNED_MAX`` places at most."""
        bound = _sequence(before) if before else None
        if before and bound is None:
            raise ValueError(f"{before[:40]!r} is not a `next` of an earlier page")
        info = await self._answered_info()
        if info is None:
            return DeadLetterPage((), None)
        first, last = info
        top = last if bound is None else min(last, bound - 1)
        lowest = max(first, top - limits.DEAD_LETTERS_SCANNED_MAX + 1)
        found: list[DeadLetter] = []
        size_bytes = 0
        while top >= lowest:
            chunk = range(top, max(lowest - 1, top - limits.DEAD_LETTERS_READ_AT_ONCE), -1)
            for letter in await asyncio.gather(*(self._letter(seq) for seq in chunk)):
                if letter is None or (pattern and not topics.matches(pattern, letter.topic)):
                    continue
                found.append(letter)
                size_bytes += letter.size_bytes
                if len(found) >= limit or size_bytes >= limits.DEAD_LETTER_PAGE_MAX_BYTES:
                    return DeadLetterPage(tuple(found), _older_than(int(letter.id), first))
            top = chunk[-1] - 1
        return DeadLetterPage(tuple(found), _older_than(lowest, first))

    async def get(self, letter_id: str) -> DeadLetter | None:
        """One letter; see ``DeadLetters``."""
        seq = _sequence(letter_id)
        if seq is None:
            return None
        letter = await self._letter(seq)
        if letter is None and await self._answered_info() is not None:
            # Whoever said so may have been behind.
            letter = await self._letter(seq)
        return letter

    async def redrive(self, letter_id: str) -> Redrive:
        """Send again and remove; see ``DeadLetters``."""
        letter = await self.get(letter_id)
        if letter is None:
            return Redrive(RedriveOutcome.GONE)
        mailbox = Subscription(letter.topic, letter.group)
        born = await self._birth(mailbox)
        if born is None:
            return Redrive(RedriveOutcome.MAILBOX_GONE, letter)
        await self._send(letter)
        # A mailbox that was retired meanwhile, or made anew, may never have seen the message: the letter stays.
        if await self._birth(mailbox) != born:
            return Redrive(RedriveOutcome.MAILBOX_GONE, letter)
        await self.drop(letter_id)
        event_id = letter.event.id if letter.event else ""
        _log.info("dead_letter_redriven", letter=letter.id, topic=letter.topic, group=letter.group, event_id=event_id)
        return Redrive(RedriveOutcome.REDRIVEN, letter)

    async def drop(self, letter_id: str) -> bool:
        """Remove; see ``DeadLetters``."""
        seq = _sequence(letter_id)
        if seq is None:
            return False
        try:
            dropped = await self._api.message_delete(topics.STREAM_DLQ, seq)
        except ApiError as error:
            raise Unavailable(str(error)) from error
        if dropped:
            _log.info("dead_letter_removed", letter=letter_id)
        return dropped

    async def _send(self, letter: DeadLetter) -> None:
        # Another id than the first publish had, or the broker's duplicate window would swallow it; the same for each
        # repeat of this redrive.
        message_id = f"redrive.{letter.id}.{letter.at.timestamp():.6f}"
        try:
            await self._api.publish(letter.topic, letter.payload, message_id=message_id)
        except ApiError as error:
            if error.err_code in STREAM_FULL:
                raise full(letter.topic, error) from error
            raise Unavailable(f"{letter.topic}: the broker refused the message: {error.description}") from error

    async def _birth(self, mailbox: Subscription) -> datetime | None:
        """When the mailbox was made, or ``None`` where there is none."""
        stream = topics.namespace_stream(mailbox.topic) if mailbox.topic else None
        if stream is None:
            return None
        try:
            info = await self._api.consumer_info(stream, topics.durable_name(mailbox.topic, mailbox.group))
        except ApiError as error:
            if error.err_code == STREAM_NOT_FOUND:
                return None
            raise Unavailable(str(error)) from error
        return None if info is None else info.created

    async def _answered_info(self) -> tuple[int, int] | None:
        """The first and the last place that is taken, or ``None`` where the box is empty.

        Raises ``Unavailable`` where no leader with a majority says so: what is not known is not empty.
        """
        info = await self._info()
        if info.config.num_replicas > 1:
            await self._require_majority()
            # What the majority had taken before that word is in this answer.
            info = await self._info()
        if info.state.messages == 0:
            return None
        return info.state.first_seq, info.state.last_seq

    async def _info(self) -> StreamInfo:
        try:
            info = await self._api.stream_info(topics.STREAM_DLQ)
        except (ApiError, Unavailable) as error:
            raise Unavailable(f"{_UNKNOWN}: {error}") from error
        if info is None:
            raise Unavailable(f"{_UNKNOWN}: their stream is not there")
        if not info.led:
            raise Unavailable(f"{_UNKNOWN}: nobody leads their stream now")
        return info

    async def _require_majority(self) -> None:
        """To delete what was never there changes nothing, and has to be agreed on all the same."""
        try:
            await self._api.message_delete(topics.STREAM_DLQ, _NO_LETTER)
        except (ApiError, Unavailable) as error:
            raise Unavailable(f"{_UNKNOWN}: most of the members that keep them do not answer: {error}") from error

    async def _letter(self, seq: int) -> DeadLetter | None:
        try:
            message = await self._api.message(topics.STREAM_DLQ, seq)
        except ApiError as error:
            if error.err_code == STREAM_NOT_FOUND:
                return None
            raise Unavailable(str(error)) from error
        return None if message is None else _letter_of(message)


def _letter_of(message: StoredMessage) -> DeadLetter:
    headers = message.headers
    return DeadLetter(
        id=str(message.seq),
        topic=headers.get(TOPIC_HEADER, ""),
        group=headers.get(GROUP_HEADER, ""),
        event=_event_of(message.data),
        payload=message.data,
        reason=headers.get(REASON_HEADER, ""),
        deliveries=_number(headers.get(DELIVERIES_HEADER, "")),
        at=message.time,
        stream=headers.get(STREAM_HEADER, ""),
        stream_seq=_number(headers.get(SEQUENCE_HEADER, "")),
    )


def _event_of(payload: bytes) -> Event | None:
    try:
        return decode(payload)
    except MalformedEvent:
        return None


def _sequence(text: str) -> int | None:
    is_one = text.isascii() and text.isdecimal() and len(text) <= _ID_MAX_DIGITS
    return (int(text) or None) if is_one else None


def _number(text: str) -> int:
    return _sequence(text) or 0


def _older_than(seq: int, first: int) -> str | None:
    return str(seq) if seq > first else None
