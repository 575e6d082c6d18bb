"""What the twin's broker stores and hands out: messages, their place in one mailbox, and who holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from crewlet.events import Event, MalformedEvent, decode
from crewlet.queue import Subscription

__all__ = ["Burial", "Held", "Holder", "Mail", "StoredMessage"]


@dataclass(frozen=True, slots=True)
class Burial:
    """The note on a dead letter: whose mail it was, where it had been stored, and why it was given up."""

    subscription: Subscription
    stream: str
    sequence: int
    deliveries: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """One message of a stream. ``stored_s`` is on the broker's clock of elapsed time, ``published_at`` on its wall."""

    stream: str
    sequence: int
    topic: str
    payload: bytes = field(repr=False)
    published_at: datetime
    stored_s: float
    burial: Burial | None = None

    @property
    def event(self) -> Event | None:
        """The event in it, or ``None`` where the payload is none."""
        try:
            return decode(self.payload)
        except MalformedEvent:
            return None


@dataclass(frozen=True, slots=True)
class Mail:
    """A message in one mailbox, delivered so many times; ``holder`` is the node that holds it now, if one does."""

    message: StoredMessage
    deliveries: int = 0
    holder: str | None = None


class Holder(Protocol):
    """One client's attachment, as the mailbox sees it."""

    node: str

    def wake(self) -> None:
        """There may be mail to take."""
        ...

    def mailbox_deleted(self) -> None:
        """The mailbox is gone, with its mail."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """One delivery in a holder's hands; ``mail`` counts it already."""

    mail: Mail
    holder: Holder
    since_s: float
