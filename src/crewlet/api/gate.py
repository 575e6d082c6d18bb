"""The door in front of every route: who asks, how much, how long; and the last word when a route breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from crewlet.api.admission import READS, WRITES, Admission, Head
from crewlet.api.body import Disconnected, Message, Receive, read_body, replay
from crewlet.api.config import ApiLimits
from crewlet.api.refusals import DRAINING, INTERNAL, Refusal, outcome_unknown, unavailable
from crewlet.node.face import NodeFace

__all__ = ["App", "Gate", "Scope", "Send"]

_log = structlog.get_logger(__name__)

Scope = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gate:
    """An ASGI application around the routes; a route added later stands behind it without doing anything for it."""

    def __init__(self, routes: App, face: NodeFace, admission: Admission, limits: ApiLimits) -> None:
        self._routes = routes
        self._face = face
        self._admission = admission
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request or socket through, or answer why not."""
        head = _head_of(scope)
        verdict = self._admission.decide(head)
        if isinstance(verdict, Refusal):
            await _refuse(verdict, scope, send)
            return
        passed = {**scope, "state": {**scope.get("state", {}), "principal": verdict}}
        if scope["type"] == "websocket":
            await self._supervised(passed, receive, _Answer(send))
        else:
            await self._request(head, passed, receive, send)

    async def _request(self, head: Head, scope: Scope, receive: Receive, send: Send) -> None:
        if head.method in WRITES and self._face.health().shutting_down:
            await _refuse(DRAINING, scope, send)
            return
        try:
            body = await read_body(
                head, receive, max_bytes=self._limits.body_max_bytes, timeout_s=self._limits.body_timeout_s
            )
        except Disconnected:
            return
        if isinstance(body, Refusal):
            await _refuse(body, scope, send)
            return
        # The server leaves the body out of an answer to HEAD by itself.
        asked = {**scope, "method": "GET"} if head.method == "HEAD" else scope
        answer = _Answer(send)
        try:
            async with asyncio.timeout(self._limits.answer_timeout_s):
                await self._supervised(asked, replay(body, receive), answer)
        except TimeoutError:
            _log.error("api_answer_late", method=head.method, path=head.path)
            message = f"no answer within {self._limits.answer_timeout_s:g} s"
            late = unavailable(message) if head.method in READS else outcome_unknown(message)
            if not answer.started:
                await _refuse(late, scope, send)

    async def _supervised(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            await self._routes(scope, receive, answer)
        except Exception:  # noqa: BLE001 - a supervisor
            # What a route did not expect is told to the log, never to the client.
            _log.exception("api_request_failed", path=scope["path"], method=scope.get("method", "WEBSOCKET"))
            if not answer.started:
                await _refuse(INTERNAL, scope, answer)


class _Answer:
    """``send``, remembering whether an answer began."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)


def _head_of(scope: Scope) -> Head:
    return Head(scope.get("method", "GET"), scope["path"], scope["query_string"], scope["headers"])


async def _refuse(refusal: Refusal, scope: Scope, send: Send) -> None:
    """The envelope; on a socket that is not accepted yet it is the answer to the handshake."""
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = refusal.body()
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": refusal.raw_headers(body)})
    await send({"type": f"{kind}.body", "body": body})
