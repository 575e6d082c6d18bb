"""Just enough of an HTTP/1.1 server to break a connection at any byte. Loopback only."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crewlet.testing.waiting import wait_until

__all__ = ["Connection", "HttpRequest", "LoopbackServer"]

_HEAD_MAX_BYTES = 64 * 1024
_BODY_MAX_BYTES = 64 * 1024 * 1024
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request as it came: header names in lower case, the body decoded where it is JSON."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any] = field(default_factory=dict[str, Any])


class Connection:
    """The answering side of one request."""

    def __init__(self, writer: asyncio.StreamWriter, closing: asyncio.Event) -> None:
        self._writer = writer
        self._closing = closing

    async def send(self, status: int, body: str, headers: Mapping[str, str]) -> None:
        """A whole response."""
        data = body.encode()
        await self._write(self._head(status, {**headers, "content-length": str(len(data))}) + data)

    async def open_stream(self, headers: Mapping[str, str]) -> None:
        """The head of a response whose body comes in pieces."""
        await self._write(self._head(200, {**headers, "transfer-encoding": "chunked"}))

    async def send_piece(self, text: str) -> None:
        """One piece of the body."""
        data = text.encode()
        await self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def close_stream(self) -> None:
        """The proper end of the body."""
        await self._write(b"0\r\n\r\n")

    async def hang(self, seconds: float | None = None) -> None:
        """Say nothing, for so long or until the server closes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    def reset(self) -> None:
        """Break the connection without an end."""
        self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    @staticmethod
    def _head(status: int, headers: Mapping[str, str]) -> bytes:
        lines = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class LoopbackServer:
    """Hands each request to ``respond``; requests of one connection come one after the other."""

    def __init__(self, respond: Callable[[HttpRequest, Connection], Awaitable[None]]) -> None:
        self._respond = respond
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._closing = asyncio.Event()
        self.port = 0

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1, on a free port unless one is named."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_HEAD_MAX_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Stop listening and break what is open."""
        assert self._server is not None, "closed before it was started"
        self._server.close()
        self._closing.set()
        for writer in self._open:
            writer.transport.abort()
        await self._server.wait_closed()
        await wait_until(lambda: not self._open, what="the end of all connections")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while (request := await _read_request(reader)) is not None:
                await self._respond(request, Connection(writer, self._closing))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client went away; that is its right.
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            self._open.discard(writer)


async def _read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    length = int(headers.get("content-length", "0"))
    if length > _BODY_MAX_BYTES:
        return None
    body = await reader.readexactly(length)
    return HttpRequest(first.split(" ")[1].partition("?")[0], headers, json.loads(body) if body else {})
