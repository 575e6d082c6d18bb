"""What the twin's broker stores nothing of: live feeds, and questions to whoever serves their subject."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from crewlet import topics
from crewlet.backends.memory.queue_line import Line
from crewlet.backends.memory.queue_mail import StoredMessage
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


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """One client's answers on one subject."""

    responder: Responder
    line: Line
    tasks: Tasks


class Responders:
    """Who answers on which subject, and the asking."""

    def __init__(self) -> None:
        self._by_subject: dict[str, list[Server]] = {}

    def add(self, subject: str, server: Server) -> Callable[[], None]:
        """``server`` is asked from now on; returns what ends that."""
        self._by_subject.setdefault(subject, []).append(server)

        def remove() -> None:
            servers = self._by_subject.get(subject, [])
            if server in servers:
                servers.remove(server)
            if not servers:
                self._by_subject.pop(subject, None)

        return remove

    async def ask(self, subject: str, payload: bytes, asker: Line, *, timeout_s: float, expected: int) -> list[Answer]:
        """What came within ``timeout_s``, in the order in which it came; at once when no more can come."""
        asked = [*self._by_subject.get(subject, ())]
        wanted = min(expected, len(asked)) if expected > 0 else len(asked)
        answers: list[Answer] = []
        came = asyncio.Event()

        async def ask_one(server: Server) -> None:
            answer = await _answer(server, payload)
            if server.line.is_up and asker.is_up:
                answers.append(answer)
                came.set()

        for server in asked:
            # Who is cut off is silent, and the asker cannot know it.
            if server.line.is_up:
                server.tasks.start(f"answer:{subject}", ask_one(server))
        try:
            async with asyncio.timeout(timeout_s):
                while len(answers) < wanted:
                    came.clear()
                    await came.wait()
        except TimeoutError:
            pass
        return [*answers]


async def _answer(server: Server, payload: bytes) -> Answer:
    try:
        return Answer(server.line.node, await server.responder(payload))
    except Exception as error:  # noqa: BLE001 - supervisor: what a responder raises is its answer, not its silence
        _log.warning("question_failed", node=server.line.node, error=repr(error))
        return Answer(server.line.node, error=str(error) or type(error).__name__)
