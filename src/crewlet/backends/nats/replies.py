"""Requests that wait for their answers, all of them on one subscription."""

from __future__ import annotations

import asyncio

from crewlet.backends.nats.wire import Message
from crewlet.base.errors import Unavailable

__all__ = ["Replies"]


class Replies:
    """The answers that one connection waits for. Each has a subject of its own below ``inbox``."""

    def __init__(self, inbox: str) -> None:
        self._inbox = inbox
        self._numbered = 0
        self._pending: dict[str, asyncio.Future[Message]] = {}

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def pattern(self) -> str:
        """What to subscribe to, for :meth:`take`."""
        return f"{self._inbox}.*"

    def new_inbox(self) -> str:
        """A subject nobody else uses, that is none of ours."""
        self._numbered += 1
        # One token deeper than an answer's, so that `pattern` does not cover it.
        return f"{self._inbox}.s.{self._numbered}"

    def expect(self) -> tuple[str, asyncio.Future[Message]]:
        """The subject for one answer, and what it will come in; to be forgotten once it is no longer waited for."""
        self._numbered += 1
        subject = f"{self._inbox}.{self._numbered}"
        answer = self._pending[subject] = asyncio.get_running_loop().create_future()
        return subject, answer

    def forget(self, subject: str) -> None:
        """Nobody waits for this answer any more."""
        answer = self._pending.pop(subject, None)
        if answer is not None and answer.done() and not answer.cancelled():
            # Seen, even where the caller stopped waiting for another reason first.
            answer.exception()

    def take(self, message: Message) -> None:
        """Somebody answered; too late, where it was forgotten."""
        answer = self._pending.pop(message.subject, None)
        if answer is not None and not answer.done():
            answer.set_result(message)

    def fail(self) -> None:
        """The link dropped: what has not come will not come."""
        for subject, answer in self._pending.items():
            if not answer.done():
                answer.set_exception(Unavailable(f"{subject}: the link dropped before the answer came"))
