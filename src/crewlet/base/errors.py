"""The tree of errors: a type exists where some caller acts differently on it.

::

    CrewletError
    ├── ConfigError       a file or a value that a person wrote is wrong: names the path, the problem, the remedy
    ├── StartRefused      this process cannot start here (port taken, directory held): names the remedy
    ├── Unavailable       unknown: the outside did not answer, and what was asked may have happened
    │   └── MailboxFull       no room for a message: it was not stored, and may be when there is room again
    ├── Conflict          a write expected something else than what is stored
    ├── Fenced            the right to act for this seat is gone
    │   └── StoppedByPerson   a person stopped this turn; it must not come back
    └── PayloadTooLarge   a message is above what the broker accepts; nothing was sent

Three kinds that must never be mixed: *expected* errors are handled by name, *unknown* ones (``Unavailable``) are
retried only by code that is idempotent or reads first, and the impossible is an ``assert``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ConfigError",
    "Conflict",
    "CrewletError",
    "Fenced",
    "MailboxFull",
    "PayloadTooLarge",
    "Problem",
    "StartRefused",
    "StoppedByPerson",
    "Unavailable",
]


class CrewletError(Exception):
    """The root of everything that Crewlet raises on purpose."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with something a person wrote: where, what, and what to do about it.

    ``line`` is the line of the file, from 1; 0 where it is not known.
    """

    path: str
    problem: str
    remedy: str = ""
    line: int = 0

    def __str__(self) -> str:
        text = f"{self.path}: {self.problem}" if self.path else self.problem
        return f"{text} ({self.remedy})" if self.remedy else text


class ConfigError(CrewletError):
    """A file or value that a person wrote is wrong; carries every problem found, not the first alone."""

    def __init__(self, *problems: Problem, file: str = "") -> None:
        if not problems:
            message = "a ConfigError names at least one problem"
            raise ValueError(message)
        self.problems = problems
        self.file = file
        super().__init__("\n".join(f"{self._where(problem)}{problem}" for problem in problems))

    def _where(self, problem: Problem) -> str:
        line = str(problem.line) if problem.line else ""
        where = ":".join(part for part in (self.file, line) if part)
        return f"{where}: " if self.file else ""


class StartRefused(CrewletError):
    """This process cannot start here; the message names what stands in the way and the remedy."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem} ({remedy})" if remedy else problem)


class Unavailable(CrewletError):
    """Unknown, never no: the outside did not answer in time, and the request may have taken effect (C-003)."""


class MailboxFull(Unavailable):
    """There is no room for a message where it should wait. It was not stored: who may wait sends it again later.

    Unavailable to whoever does not care why, as a broker that cannot be reached is. ``at_limit``: the mailboxes hold as
    much as they may; else a disk or a memory is full, and the broker may not be well.
    """

    def __init__(self, topic: str, why: str, *, at_limit: bool = True) -> None:
        self.topic = topic
        self.at_limit = at_limit
        super().__init__(f"{topic}: not stored, there is no room for it: {why}")


class Conflict(CrewletError):
    """A write found something else stored than it expected; nothing was written.

    ``expected`` is the revision the writer named (0: the key should not have existed), ``current`` the revision
    found, or ``None`` where the store did not say.
    """

    def __init__(self, key: str, *, expected: int, current: int | None = None) -> None:
        self.key = key
        self.expected = expected
        self.current = current
        found = "another revision" if current is None else f"revision {current}"
        super().__init__(f"{key!r}: expected revision {expected}, found {found}")


class Fenced(CrewletError):
    """The right to act for this seat is gone: it moved, or it was re-claimed under another epoch (S-074)."""


class StoppedByPerson(Fenced):
    """A person stopped this turn: its trigger is recorded and acknowledged, not handed back.

    ``by``: who stopped it, and ``by_seat`` their seat, where they have one.
    """

    def __init__(self, message: str, *, by: str = "", by_seat: str = "", reason: str = "") -> None:
        self.by = by
        self.by_seat = by_seat
        self.reason = reason
        super().__init__(message)


class PayloadTooLarge(CrewletError):
    """A message is above the broker's limit; refused before anything was sent."""

    def __init__(self, subject: str, *, size: int, limit: int) -> None:
        self.subject = subject
        self.size = size
        self.limit = limit
        super().__init__(f"{subject}: a message of {size} bytes is above the broker's limit of {limit} bytes")
