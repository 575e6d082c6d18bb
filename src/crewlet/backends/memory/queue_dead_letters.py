"""The dead letters of the twin's broker, as an operator handles them."""

from __future__ import annotations

import asyncio

import structlog

from crewlet import topics
from crewlet.backends.memory.queue_broker import MemoryBroker, letter_of
from crewlet.base import limits
from crewlet.queue import DeadLetter, DeadLetterPage, DeadLetters, Redrive, RedriveOutcome, Subscription

__all__ = ["MemoryDeadLetterBox"]

_log = structlog.get_logger(__name__)


class MemoryDeadLetterBox(DeadLetters):
    """A letter's id is its place in the stream, so it is never given to another."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    async def page(self, *, limit: int, before: str = "", pattern: str = "") -> DeadLetterPage:
        """The newest first; see ``DeadLetters``. Looks at ``limits.DEAD_LETTERS_SCANNED_MAX`` letters at most."""
        await asyncio.sleep(0)
        bound = _sequence(before) if before else None
        if before and bound is None:
            raise ValueError(f"{before[:40]!r} is not a `next` of an earlier page")
        older = [letter for letter in reversed(self._broker.dead_letters()) if bound is None or int(letter.id) < bound]
        found: list[DeadLetter] = []
        size_bytes = 0
        for index, letter in enumerate(older):
            if not pattern or topics.matches(pattern, letter.topic):
                found.append(letter)
                size_bytes += letter.size_bytes
            full = len(found) >= limit or size_bytes >= limits.DEAD_LETTER_PAGE_MAX_BYTES
            if full or index + 1 >= limits.DEAD_LETTERS_SCANNED_MAX:
                is_last = index + 1 == len(older)
                return DeadLetterPage(tuple(found), None if is_last else letter.id)
        return DeadLetterPage(tuple(found), None)

    async def get(self, letter_id: str) -> DeadLetter | None:
        """One letter; see ``DeadLetters``."""
        await asyncio.sleep(0)
        return self._letter(letter_id)

    async def redrive(self, letter_id: str) -> Redrive:
        """Send again and remove; see ``DeadLetters``."""
        await asyncio.sleep(0)
        letter = self._letter(letter_id)
        if letter is None:
            return Redrive(RedriveOutcome.GONE)
        if self._broker.mailbox(Subscription(letter.topic, letter.group)) is None:
            return Redrive(RedriveOutcome.MAILBOX_GONE, letter)
        # Another id than the first publish had, or the duplicate window would swallow it.
        self._broker.store(letter.topic, letter.payload, message_id=f"redrive.{letter.id}")
        self._remove(letter_id)
        event_id = letter.event.id if letter.event else ""
        _log.info("dead_letter_redriven", letter=letter.id, topic=letter.topic, group=letter.group, event_id=event_id)
        return Redrive(RedriveOutcome.REDRIVEN, letter)

    async def drop(self, letter_id: str) -> bool:
        """Remove; see ``DeadLetters``."""
        await asyncio.sleep(0)
        return self._remove(letter_id)

    def _letter(self, letter_id: str) -> DeadLetter | None:
        sequence = _sequence(letter_id)
        message = None if sequence is None else self._broker.stream(topics.STREAM_DLQ).get(sequence)
        return None if message is None else letter_of(message)

    def _remove(self, letter_id: str) -> bool:
        sequence = _sequence(letter_id)
        stream = self._broker.stream(topics.STREAM_DLQ)
        message = None if sequence is None else stream.get(sequence)
        if message is None:
            return False
        stream.drop(message)
        _log.info("dead_letter_removed", letter=letter_id)
        return True


def _sequence(text: str) -> int | None:
    return (int(text) or None) if text.isascii() and text.isdecimal() else None
