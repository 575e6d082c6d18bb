"""One stream of the twin's broker: what it keeps, for whom or for how long, and which publishes are repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crewlet import topics
from crewlet.backends.memory.queue_mail import Burial, StoredMessage
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.queue import QueueConfig

__all__ = ["MemoryStream", "StreamLimits", "stream_limits"]

_LETTERS_WINDOW_S: Final = limits.DEAD_LETTER_DUPLICATE_WINDOW_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """What a stream keeps: how long (``None``: interest retention), how much, and what gives way when it is full."""

    age_s: float | None
    max_bytes: int
    gives_up_oldest: bool = False
    duplicate_window_s: float = limits.DUPLICATE_WINDOW_S


class MemoryStream:
    """Messages in the order in which they were stored.

    Under interest retention a message stays while some mailbox has not settled it, and one that no mailbox covers is
    never kept. With an age it stays that long, whoever has read it.
    """

    def __init__(self, name: str, clock: Clock, kept: StreamLimits) -> None:
        self.name = name
        self.kept = kept
        self.last_sequence = 0
        self.size_bytes = 0
        self._clock = clock
        self._messages: dict[int, StoredMessage] = {}
        self._by_topic: dict[str, dict[int, StoredMessage]] = {}
        self._owed: dict[int, int] = {}
        self._seen: dict[str, float] = {}

    def __contains__(self, message: StoredMessage) -> bool:
        return message.sequence in self._messages

    def has_room(self, topic: str, payload: bytes, *, readers: int) -> bool:
        """Whether the message can be stored, the oldest given up for it where the limits say so."""
        if not self._keeps(readers):
            return True
        self.drop_aged()
        needed = _size_bytes(topic, payload)
        while self.size_bytes + needed > self.kept.max_bytes and self.kept.gives_up_oldest and self._messages:
            self.drop(next(iter(self._messages.values())))
        return self.size_bytes + needed <= self.kept.max_bytes

    def append(self, topic: str, payload: bytes, *, readers: int, burial: Burial | None = None) -> StoredMessage:
        """The message under the next sequence, kept where retention says so; ``readers`` mailboxes cover it."""
        self.last_sequence += 1
        message = StoredMessage(
            stream=self.name,
            sequence=self.last_sequence,
            topic=topic,
            payload=payload,
            published_at=self._clock.now(),
            stored_s=self._clock.elapsed_s(),
            burial=burial,
        )
        if not self._keeps(readers):
            return message
        if self.kept.age_s is None:
            self._owed[message.sequence] = readers
        self.size_bytes += _size_bytes(topic, payload)
        self._messages[message.sequence] = message
        self._by_topic.setdefault(topic, {})[message.sequence] = message
        return message

    def has_seen(self, message_id: str) -> bool:
        """Whether ``message_id`` was stored inside the duplicate window."""
        until_s = self._clock.elapsed_s() - self.kept.duplicate_window_s
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest] > until_s:
                break
            del self._seen[oldest]
        return message_id in self._seen

    def remember(self, message_id: str) -> None:
        """``message_id`` is stored; as on the real broker, also where nobody covered it."""
        self._seen[message_id] = self._clock.elapsed_s()

    def of_topic(self, topic: str) -> list[StoredMessage]:
        """What is kept of one topic, in order."""
        self.drop_aged()
        return [*self._by_topic.get(topic, {}).values()]

    def after(self, sequence: int, pattern: str = ">") -> list[StoredMessage]:
        """What is kept behind ``sequence`` and covered by ``pattern``, in order."""
        self.drop_aged()
        behind = (message for message in self._messages.values() if message.sequence > sequence)
        return [message for message in behind if topics.matches(pattern, message.topic)]

    def get(self, sequence: int) -> StoredMessage | None:
        """The message of one sequence, if it is kept."""
        self.drop_aged()
        return self._messages.get(sequence)

    def owe(self, message: StoredMessage) -> None:
        """One more mailbox is to settle ``message``."""
        if message.sequence in self._owed:
            self._owed[message.sequence] += 1

    def settled(self, message: StoredMessage) -> None:
        """One mailbox is done with ``message``; under interest retention the last one takes it away."""
        left = self._owed.get(message.sequence)
        if left is None:
            return
        if left > 1:
            self._owed[message.sequence] = left - 1
        else:
            self.drop(message)

    def drop(self, message: StoredMessage) -> None:
        """Keep ``message`` no longer, whoever has not read it."""
        self._owed.pop(message.sequence, None)
        if self._messages.pop(message.sequence, None) is None:
            return
        self.size_bytes -= _size_bytes(message.topic, message.payload)
        of_topic = self._by_topic[message.topic]
        del of_topic[message.sequence]
        if not of_topic:
            del self._by_topic[message.topic]

    def drop_aged(self) -> None:
        """Let go of what is older than the age."""
        if self.kept.age_s is None:
            return
        until_s = self._clock.elapsed_s() - self.kept.age_s
        while self._messages:
            oldest = next(iter(self._messages.values()))
            if oldest.stored_s > until_s:
                return
            self.drop(oldest)

    def _keeps(self, readers: int) -> bool:
        return self.kept.age_s is not None or readers > 0


def stream_limits(name: str, config: QueueConfig) -> StreamLimits:
    """What the stream ``name`` keeps under ``config``; one that the engine does not know is for mail (E-025)."""
    events_s = config.event_retention_s
    match name:
        case topics.STREAM_EVENTS:
            return _log_of(events_s, config.event_max_bytes or limits.EVENT_STREAM_BYTES)
        case topics.STREAM_CONFIG:
            return _log_of(limits.CONFIG_RETENTION_S, config.config_max_bytes or limits.CONFIG_STREAM_BYTES)
        case topics.STREAM_DLQ:
            size = config.dead_letter_max_bytes or limits.DEAD_LETTER_STREAM_BYTES
            return StreamLimits(age_s=events_s, max_bytes=size, duplicate_window_s=min(_LETTERS_WINDOW_S, events_s))
        case topics.STREAM_AGENT | topics.STREAM_NOTIFICATIONS:
            return StreamLimits(age_s=None, max_bytes=config.mailbox_max_bytes or limits.MAILBOX_STREAM_BYTES)
        case _:
            return StreamLimits(age_s=None, max_bytes=config.mailbox_max_bytes or limits.ON_DEMAND_STREAM_BYTES)


def _log_of(age_s: float, max_bytes: int) -> StreamLimits:
    window_s = min(limits.DUPLICATE_WINDOW_S, age_s)
    return StreamLimits(age_s=age_s, max_bytes=max_bytes, gives_up_oldest=True, duplicate_window_s=window_s)


def _size_bytes(topic: str, payload: bytes) -> int:
    return len(topic) + len(payload)
