"""Ephemeral questions over the bare connection: asked of every node that serves them, stored by nobody."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import structlog

from crewlet import topics
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base import limits
from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.queue import Answer, Responder, StreamSubscription

__all__ = ["ERROR_HEADER", "NODE_HEADER", "Questions"]

_log = structlog.get_logger(__name__)

NODE_HEADER: Final = "Crewlet-Node"
ERROR_HEADER: Final = "Crewlet-Error"

_NO_RESPONDERS: Final = "503"


class Questions:
    """Asking and answering. Subjects live below one of their own, which no stream covers."""

    def __init__(self, wire: Wire, node: str, tasks: Tasks) -> None:
        self._wire = wire
        self._node = node
        self._tasks = tasks

    async def serve(self, subject: str, responder: Responder) -> StreamSubscription:
        """Answer until closed; see ``EventQueue``."""
        service = _Service(subject, responder, wire=self._wire, node=self._node, tasks=self._tasks)
        await service.open()
        return service

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int) -> list[Answer]:
        """Ask everybody; see ``EventQueue``. Raises ``Unavailable`` where the link drops before the end."""
        collected = _Collected(expected or limits.SCATTER_ANSWERS_MAX)
        inbox = self._wire.new_inbox()
        unsubscribe = await self._wire.subscribe(inbox, collected.take)
        unwatch = self._wire.on_disconnected(collected.link_lost)
        try:
            await self._wire.publish(topics.question(subject), payload, reply=inbox)
            async with asyncio.timeout(timeout_s):
                await collected.done.wait()
        except TimeoutError:
            pass
        finally:
            unwatch()
            await unsubscribe()
        if collected.lost:
            raise Unavailable(f"{subject}: the link dropped before every answer was there")
        return collected.answers


class _Collected:
    """What has come back so far."""

    def __init__(self, enough: int) -> None:
        self._enough = min(enough, limits.SCATTER_ANSWERS_MAX)
        self.answers: list[Answer] = []
        self.done = asyncio.Event()
        self.lost = False

    def take(self, message: Message) -> None:
        if message.status == _NO_RESPONDERS:
            self.done.set()
        if message.status or self.done.is_set():
            return
        node, error = message.headers.get(NODE_HEADER, ""), message.headers.get(ERROR_HEADER, "")
        self.answers.append(Answer(node, message.payload, error))
        if len(self.answers) >= self._enough:
            self.done.set()

    def link_lost(self) -> None:
        self.lost = not self.done.is_set()
        self.done.set()


class _Service(StreamSubscription):
    """One subject that this node answers."""

    def __init__(self, subject: str, responder: Responder, *, wire: Wire, node: str, tasks: Tasks) -> None:
        self._subject = subject
        self._responder = responder
        self._wire = wire
        self._node = node
        self._tasks = tasks
        self._answering: set[asyncio.Task[None]] = set()
        self._unsubscribe: Unsubscribe | None = None

    async def open(self) -> None:
        self._unsubscribe = await self._wire.subscribe(topics.question(self._subject), self._asked)
        # The broker reads a link in order: the end of a later subscription, confirmed, says that it knows of ours.
        await (await self._wire.subscribe(self._wire.new_inbox(), _ignore))()

    async def close(self) -> None:
        """Answer nothing any more; what is being answered is given up."""
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            await unsubscribe()
        for task in self._answering:
            task.cancel()

    def _asked(self, message: Message) -> None:
        if not message.reply:
            return
        busy = len(self._answering) >= limits.QUESTIONS_ANSWERED_AT_ONCE_MAX
        work = self._reply(message.reply, error="busy: too many questions at once") if busy else self._answer(message)
        task = self._tasks.start(f"answer:{self._subject}", work)
        if not busy:
            self._answering.add(task)
            task.add_done_callback(partial(self._answering.discard))

    async def _answer(self, message: Message) -> None:
        try:
            async with asyncio.timeout(limits.QUESTION_ANSWER_TIMEOUT_S):
                payload = await self._responder(message.payload)
        except Exception as error:  # noqa: BLE001 - supervisor: a failing responder is a failed answer, never silence
            _log.warning("question_failed", subject=self._subject, error=repr(error), exc_info=error)
            await self._reply(message.reply, error=str(error) or type(error).__name__)
            return
        try:
            await self._reply(message.reply, payload)
        except PayloadTooLarge as error:
            await self._reply(message.reply, error=str(error))

    async def _reply(self, reply: str, payload: bytes = b"", *, error: str = "") -> None:
        headers = {NODE_HEADER: self._node}
        if error:
            plain = " ".join(error.encode("ascii", "replace").decode("ascii").split())
            headers[ERROR_HEADER] = plain[: limits.ANSWER_ERROR_MAX_CHARS]
        try:
            await self._wire.publish(reply, payload, headers=headers)
        except Unavailable as failure:
            _log.debug("answer_undelivered", subject=self._subject, error=str(failure))


def _ignore(_message: Message) -> None:
    """Nothing is sent here."""
