"""The server's connections with the bounds that uvicorn leaves out: late headers, unread bodies, stalled readers."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from crewlet.api.body import Message, Receive
from crewlet.api.config import ApiLimits
from crewlet.api.gate import Scope, Send
from crewlet.api.refusals import BODY_LATE, MALFORMED, TOO_MANY_CONNECTIONS, Refusal

__all__ = ["protocols"]

_log = structlog.get_logger(__name__)
_REASONS = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


def protocols(limits: ApiLimits) -> tuple[type[asyncio.Protocol], type[asyncio.Protocol]]:
    """The classes of an HTTP connection and of a socket, bound to these limits; uvicorn makes their instances."""

    class Http(_HttpConnection):
        bounds = limits

    class Socket(_SocketConnection):
        bounds = limits

    return Http, Socket


class _Deadline:
    """One timer that can be set, kept and stopped."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def start(self, after_s: float, act: Any) -> None:  # noqa: ANN401 - whatever a loop may call
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(after_s, act)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _HttpConnection(H11Protocol):
    bounds: ApiLimits

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._headers_due = _Deadline()
        self._body_due = _Deadline()
        self._write_due = _Deadline()
        self._is_one_too_many = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_one_too_many = len(self.connections) > self.bounds.connections_max
        if self._is_one_too_many:
            _log.warning("api_connections_full", connections=len(self.connections))
            self.app = _refuse_connection
        self._headers_due.start(self.bounds.headers_timeout_s, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        for deadline in (self._headers_due, self._body_due, self._write_due):
            deadline.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._headers_due.stop()
        elif self.transport.get_protocol() is self and not self.transport.is_closing():
            # Kept once started: a client that sends its headers byte by byte gains nothing.
            self._headers_due.start(self.bounds.headers_timeout_s, self._late)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._headers_due.stop()
        if self._is_one_too_many:
            self._answer(TOO_MANY_CONNECTIONS)
            return
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            # Read on a little, so that the refusal reaches a client which is still sending.
            self._body_due.start(self.bounds.unread_body_wait_s, self.transport.abort)
        else:
            self._body_due.stop()

    def send_400_response(self, msg: str) -> None:
        self._answer(MALFORMED)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_due.start(self.bounds.write_stalled_max_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._write_due.stop()
        super().resume_writing()

    def _late(self) -> None:
        self._headers_due.stop()
        if not self.transport.is_closing():
            self._answer(BODY_LATE)

    def _answer(self, refusal: Refusal) -> None:
        """Straight to the wire: there is no request that it could be the response of."""
        body = refusal.body()
        lines = [b"HTTP/1.1 %d %s" % (refusal.status, _REASONS[refusal.status].encode())]
        lines += [b"%s: %s" % header for header in refusal.raw_headers(body)]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()


class _SocketConnection(WebSocketsSansIOProtocol):
    bounds: ApiLimits

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._write_due = _Deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._write_due.stop()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_due.start(self.bounds.write_stalled_max_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._write_due.stop()
        super().resume_writing()


async def _refuse_connection(_scope: Scope, _receive: Receive, send: Send) -> None:
    body = TOO_MANY_CONNECTIONS.body()
    start: Message = {
        "type": "http.response.start",
        "status": TOO_MANY_CONNECTIONS.status,
        "headers": TOO_MANY_CONNECTIONS.raw_headers(body),
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
