"""What could not be worked, as an operator handles it: looked at, sent on its way again, dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from crewlet.events import Event

__all__ = ["DeadLetter", "DeadLetterPage", "DeadLetters", "Redrive", "RedriveOutcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One message that was given up, and the note that was kept with it.

    ``topic`` and ``group`` name the mailbox that it was taken from (empty where the note is missing), ``stream`` and
    ``stream_seq`` where it had been stored there, ``at`` when it was given up, after how many ``deliveries`` and for
    what ``reason``. ``event`` is ``None`` where ``payload`` is no event.
    """

    id: str
    topic: str
    group: str
    event: Event | None
    payload: bytes = field(repr=False)
    reason: str
    deliveries: int
    at: datetime
    stream: str
    stream_seq: int

    @property
    def size_bytes(self) -> int:
        """How large the message is."""
        return len(self.payload)


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """Some letters, the newest first. Ask on with ``next`` for older ones; ``None`` is the end.

    A page may be short, or empty, and not the last: a search looks at a bounded number of letters at a time.
    """

    letters: tuple[DeadLetter, ...]
    next: str | None


class RedriveOutcome(StrEnum):
    """What became of a letter that was to be sent again."""

    REDRIVEN = "redriven"
    MAILBOX_GONE = "mailbox_gone"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Redrive:
    """The outcome, and the letter where there was one."""

    outcome: RedriveOutcome
    letter: DeadLetter | None = None


class DeadLetters(Protocol):
    """The letters of the whole company. Every call may raise ``Unavailable``: it may have happened."""

    async def page(self, *, limit: int, before: str = "", pattern: str = "") -> DeadLetterPage:
        """Up to ``limit`` letters older than ``before`` whose topic ``pattern`` covers, the newest first.

        Raises ``ValueError`` for a ``before`` that no page gave out.
        """
        ...

    async def get(self, letter_id: str) -> DeadLetter | None:
        """One letter, or ``None`` where there is none of this id."""
        ...

    async def redrive(self, letter_id: str) -> Redrive:
        """Put the same bytes on their topic again, with a whole delivery budget, and remove the letter.

        The event keeps its id: one that the completion ledger knows as worked is skipped when it arrives, one that
        was given up (never recorded as worked) runs. Every group of the topic is given it. Where the mailbox is gone
        nothing is sent and the letter stays. After a crash or an ``Unavailable`` in between the letter is still
        there: sending it once more makes at most a second message with the same event id, within two minutes none.
        Raises ``PayloadTooLarge``, and ``MailboxFull`` where nothing was sent for want of room.
        """
        ...

    async def drop(self, letter_id: str) -> bool:
        """Remove a letter for good; false where there was none."""
        ...
