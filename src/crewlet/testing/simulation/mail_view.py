"""A look behind the queue's interface: what the twin's broker keeps of a mailbox, and what it buried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from crewlet import topics
from crewlet.backends.memory import MemoryBroker, StoredMessage
from crewlet.queue import Subscription

__all__ = ["Letter", "MailView", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """One message in a mailbox: which event, delivered how often, stored as which, and who holds it."""

    event_id: str
    deliveries: int
    sequence: int
    holder: str | None


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter: which event of which mailbox, after how many deliveries."""

    mailbox: Subscription
    event_id: str
    deliveries: int


class MailView:
    """Reads and changes nothing; each payload is decoded once."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._ids: dict[tuple[str, int], str] = {}
        self._still: dict[Subscription, list[Place]] | None = None

    @contextmanager
    def still(self) -> Generator[None]:
        """Nothing happens inside: each mailbox is looked at once."""
        self._still = {}
        try:
            yield
        finally:
            self._still = None

    def places(self, mailbox: Subscription) -> list[Place]:
        """What is held, then what waits, in the order in which it will be served."""
        if self._still is None:
            return self._look(mailbox)
        if mailbox not in self._still:
            self._still[mailbox] = self._look(mailbox)
        return self._still[mailbox]

    def exists(self, mailbox: Subscription) -> bool:
        """Whether there is such a mailbox."""
        return self._broker.mailbox(mailbox) is not None

    def oldest(self, mailbox: Subscription) -> datetime | None:
        """When the oldest message of the mailbox was published."""
        return min((mail.message.published_at for mail in self._broker.retained(mailbox)), default=None)

    def by_id(self, mailbox: Subscription) -> dict[str, Place]:
        """The same by event; of two with one id the last."""
        return {place.event_id: place for place in self.places(mailbox)}

    def waiting(self, mailbox: Subscription) -> dict[str, int]:
        """What nobody holds, and how often each was delivered."""
        return {place.event_id: place.deliveries for place in self.places(mailbox) if place.holder is None}

    def letters(self) -> list[Letter]:
        """Every dead letter, in order."""
        return [
            Letter(message.burial.subscription, self._id_of(message), message.burial.deliveries)
            for message in self._broker.log(topics.STREAM_DLQ)
            if message.burial is not None
        ]

    def letter_counts(self) -> Counter[tuple[Subscription, str]]:
        """How many letters there are of each message."""
        return Counter((letter.mailbox, letter.event_id) for letter in self.letters())

    def _look(self, mailbox: Subscription) -> list[Place]:
        return [
            Place(self._id_of(mail.message), mail.deliveries, mail.message.sequence, mail.holder)
            for mail in self._broker.retained(mailbox)
        ]

    def _id_of(self, message: StoredMessage) -> str:
        key = message.stream, message.sequence
        if key not in self._ids:
            event = message.event
            self._ids[key] = "?" if event is None else event.id
        return self._ids[key]
