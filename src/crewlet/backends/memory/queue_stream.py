"""One stream of the twin's broker: what it keeps, for whom or for how long, and which publishes are repeats."""

from __future__ import annotations

from crewlet import topics
from crewlet.backends.memory.queue_mail import Burial, StoredMessage
from crewlet.base import limits
from crewlet.base.clock import Clock

__all__ = ["MemoryStream", "stream_age_s"]


class MemoryStream:
    """Messages in the order in which they were stored.

    ``age_s`` is ``None`` under interest retention: a message stays while some mailbox has not settled it, and one that
    no mailbox covers is never kept. With an age it stays that long, whoever has read it.
    """

    def __init__(self, name: str, clock: Clock, *, age_s: float | None, duplicate_window_s: float) -> None:
        self.name = name
        self.age_s = age_s
        self.last_sequence = 0
        self._clock = clock
        self._duplicate_window_s = duplicate_window_s
        self._messages: dict[int, StoredMessage] = {}
        self._by_topic: dict[str, dict[int, StoredMessage]] = {}
        self._owed: dict[int, int] = {}
        self._seen: dict[str, float] = {}

    def __contains__(self, message: StoredMessage) -> bool:
        return message.sequence in self._messages

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
        if self.age_s is not None:
            self.drop_aged()
        elif readers:
            self._owed[message.sequence] = readers
        else:
            return message
        self._messages[message.sequence] = message
        self._by_topic.setdefault(topic, {})[message.sequence] = message
        return message

    def repeats(self, message_id: str) -> bool:
        """Whether ``message_id`` was stored inside the duplicate window; it counts as stored from now on.

        As on the broker, one that nobody covered counts too.
        """
        now_s = self._clock.elapsed_s()
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest] + self._duplicate_window_s > now_s:
                break
            del self._seen[oldest]
        if message_id in self._seen:
            return True
        self._seen[message_id] = now_s
        return False

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
        of_topic = self._by_topic[message.topic]
        del of_topic[message.sequence]
        if not of_topic:
            del self._by_topic[message.topic]

    def drop_aged(self) -> None:
        """Let go of what is older than the age."""
        if self.age_s is None:
            return
        until_s = self._clock.elapsed_s() - self.age_s
        while self._messages:
            oldest = next(iter(self._messages.values()))
            if oldest.stored_s > until_s:
                return
            self.drop(oldest)


def stream_age_s(name: str, event_retention_s: float) -> float | None:
    """How long a stream keeps what it stores; ``None``: interest retention, as for unknown ones (E-025)."""
    ages = {
        topics.STREAM_EVENTS: event_retention_s,
        topics.STREAM_CONFIG: limits.CONFIG_RETENTION_S,
        topics.STREAM_DLQ: event_retention_s,
    }
    return ages.get(name)
