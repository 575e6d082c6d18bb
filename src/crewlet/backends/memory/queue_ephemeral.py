"""What the twin's broker stores nothing of: live feeds, and questions to whoever serves their subject."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from crewlet import topics
from crewlet.backends.memory.queue_line import Line
from crewlet.backends.memory.queue_mail import StoredMessage
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import MalformedEvent, decode
from crewlet.queue import Answer, Responder, StreamHandler, StreamSubscription

__all__ = ["Closing", "LiveFeed", "Responders", "Server"]

_log = structlog.get_logger(__name__)


class Closing(StreamSubscription):
    """What a caller closes, once."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    async def close(self) -> None:
        """End it; harmless when repeated."""
        self._end()


class LiveFeed:
    """Every event that a pattern covers, to one handler, from the moment it was opened (E-194, E-198)."""

    def __init__(self, pattern: str, handler: StreamHandler, line: Line) -> None:
        self.pattern = pattern
        self.position = 0
        self._handler = handler
        self._line = line

    def offer(self, message: StoredMessage) -> None:
        """Hand ``message`` over where it is covered and the line is up; a handler's failure is logged."""
        if not self._line.is_up:
            return
        self.position = message.sequence
        if not topics.matches(self.pattern, message.topic):
            return
        try:
            event = decode(message.payload)
        except MalformedEvent as error:
            _log.warning("live_feed_unreadable", subject=message.topic, error=str(error))
            return
        try:
            self._handler(message.topic, event)
        except Exception:  # noqa: BLE001 - supervisor: one viewer's failure must not end the feed
            _log.exception("stream_handler_failed", pattern=self.pattern, event_id=event.id)


class Server:
    """One client's answers on one subject."""

    def __init__(self, subject: str, responder: Responder, line: Line, tasks: Tasks) -> None:
        self.subject = subject
        self.line = line
        self._responder = responder
        self._tasks = tasks
        self._answering: set[asyncio.Task[None]] = set()

    def ask(self, payload: bytes, hear: Callable[[Answer], None]) -> None:
        """Answer in the background; ``hear`` is told, unless the server is gone or cut off by then."""
        if len(self._answering) >= limits.QUESTIONS_ANSWERED_AT_ONCE_MAX:
            hear(Answer(self.line.node, error="busy: too many questions at once"))
            return
        task = self._tasks.start(f"answer:{self.subject}", self._answer(payload, hear))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def close(self) -> None:
        """Give up what is being answered."""
        for task in self._answering:
            task.cancel()

    async def _answer(self, payload: bytes, hear: Callable[[Answer], None]) -> None:
        try:
            async with asyncio.timeout(limits.QUESTION_ANSWER_TIMEOUT_S):
                answer = Answer(self.line.node, await self._responder(payload))
        except Exception as error:  # noqa: BLE001 - supervisor: a failing responder is a failed answer, never silence
            _log.warning("question_failed", subject=self.subject, error=repr(error), exc_info=error)
            plain = " ".join((str(error) or type(error).__name__).split())
            answer = Answer(self.line.node, error=plain[: limits.ANSWER_ERROR_MAX_CHARS])
        if self.line.is_up:
            hear(answer)


class Responders:
    """Who answers on which subject, and the asking."""

    def __init__(self) -> None:
        self._by_subject: dict[str, list[Server]] = {}

    def add(self, server: Server) -> Callable[[], None]:
        """``server`` is asked from now on; returns what ends that."""
        servers = self._by_subject.setdefault(server.subject, [])
        servers.append(server)

        def remove() -> None:
            servers.remove(server)
            server.close()

        return remove

    async def ask(self, subject: str, payload: bytes, asker: Line, *, timeout_s: float, expected: int) -> list[Answer]:
        """What came within ``timeout_s``, in the order in which it came; at once when no more can come.

        Raises ``Unavailable`` where the asker's line drops before the end.
        """
        asked = [*self._by_subject.get(subject, ())]
        enough = min(expected or limits.SCATTER_ANSWERS_MAX, limits.SCATTER_ANSWERS_MAX, len(asked))
        answers: list[Answer] = []
        news = asyncio.Event()

        def hear(answer: Answer) -> None:
            if asker.is_up:
                answers.append(answer)
                news.set()

        for server in asked:
            # Who is cut off is silent, and the asker cannot know it.
            if server.line.is_up:
                server.ask(payload, hear)
        with contextlib.suppress(TimeoutError), asker.dropping(news.set):
            async with asyncio.timeout(timeout_s):
                while len(answers) < enough and asker.is_up:
                    news.clear()
                    await news.wait()
        if len(answers) < enough and not asker.is_up:
            raise Unavailable(f"{subject}: the link dropped before every answer was there")
        return answers[:enough]
