"""The API as one part of a process: it listens, answers, drains and stops inside the engine's loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from crewlet.api.addresses import AllowedHosts
from crewlet.api.admission import Admission
from crewlet.api.config import ApiConfig
from crewlet.api.gate import Gate
from crewlet.api.hub import Hub
from crewlet.api.listening import listen, port_of
from crewlet.api.tokens import Tokens, check_guarded, settle_tokens
from crewlet.base import limits
from crewlet.base.clock import Clock, SystemClock
from crewlet.node.face import NodeFace

if TYPE_CHECKING:
    from uvicorn import Server

__all__ = ["ApiServer"]

_log = structlog.get_logger(__name__)


class ApiServer:
    """The operator API over one node. :meth:`bind` may be called early, to learn of a port in use before any work."""

    def __init__(self, face: NodeFace, config: ApiConfig, *, clock: Clock | None = None) -> None:
        self._face = face
        self._config = config
        self._hub = Hub(face, clock or SystemClock(), config.limits)
        self._sockets: list[socket.socket] = []
        self._server: Server | None = None
        self._forget: Callable[[], None] | None = None

    @property
    def port(self) -> int:
        """The port that is listened on, once bound."""
        return port_of(self._sockets)

    @property
    def url(self) -> str:
        """The address to ask, once bound."""
        host = self._config.host.strip("[]")
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def bind(self) -> None:
        """Take the address; clients may connect, and wait. Harmless when repeated. Raises ``StartRefused``."""
        check_guarded(self._config)
        if not self._sockets:
            self._sockets = await listen(self._config.host, self._config.port)

    async def start(self) -> None:
        """Answer requests from now on. Raises ``StartRefused``."""
        await self.bind()
        try:
            # In a thread: importing the web framework takes half a second, and a token file is on a disk.
            tokens = await asyncio.to_thread(settle_tokens, self._config)
            self._server = await asyncio.to_thread(self._build, tokens)
            await self._server.startup(sockets=self._sockets)
        except BaseException:
            self._close_sockets()
            raise
        self._forget = self._face.on_draining(lambda: self._hub.say("draining"))
        _log.info("api_started", url=self.url)

    async def stop(self, grace_s: float = limits.API_STOP_GRACE_S) -> None:
        """Take no more connections, let running answers end within ``grace_s``, and close. Harmless when repeated."""
        server, self._server = self._server, None
        if self._forget is not None:
            self._forget()
            self._forget = None
        if server is None:
            self._close_sockets()
            return
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + grace_s
        for listener in server.servers:
            listener.close()
        self._hub.end_sockets()
        try:
            async with asyncio.timeout_at(ends_at):
                await self._hub.wait_empty()
        except TimeoutError:
            _log.warning("api_sockets_cut", sockets=len(self._hub))
        await self._shut_down(server, max(0.0, ends_at - loop.time()))
        await self._hub.close()
        _log.info("api_stopped")

    async def _shut_down(self, server: Server, grace_s: float) -> None:
        try:
            async with asyncio.timeout(grace_s):
                await server.shutdown(sockets=self._sockets)
        except TimeoutError:
            _log.warning("api_answers_cut", connections=len(server.server_state.connections))
        running = [*server.server_state.tasks]
        for connection in [*server.server_state.connections]:
            connection.transport.abort()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._close_sockets()

    def _build(self, tokens: Tokens) -> Server:
        from uvicorn import Config, Server

        from crewlet.api.app import build_app
        from crewlet.api.protocols import protocols

        admission = Admission(
            AllowedHosts.of(self._config.host, self._config.hosts),
            tokens,
            allow_anonymous_read=self._config.allow_anonymous_read,
            disabled=self._config.disabled,
        )
        gate = Gate(build_app(self._face, self._hub), self._face, admission, self._config.limits)
        http, websocket = protocols(self._config.limits)
        config = Config(
            gate,
            http=http,
            ws=websocket,
            ws_max_size=limits.STREAM_CLIENT_FRAME_MAX_BYTES,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            # Its lines show a socket's query, which may hold a token, and each task that a stop cuts as a failure;
            # what a route does wrong is logged by the gate.
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=self._config.limits.keep_alive_s,
        )
        config.load()
        server = Server(config)
        server.lifespan = config.lifespan_class(config)
        return server

    def _close_sockets(self) -> None:
        sockets, self._sockets = self._sockets, []
        for listener in sockets:
            listener.close()
