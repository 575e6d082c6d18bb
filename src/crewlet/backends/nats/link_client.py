"""The client library's connection as a link uses it: it dials, logs in and pings; frames are read and written by us."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Final, cast
from urllib.parse import ParseResult

import structlog
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from nats.protocol.parser import Parser

from crewlet.backends.nats.frames import FrameReader
from crewlet.backends.nats.read_tap import ReadTap
from crewlet.backends.nats.wire import Message

__all__ = ["LinkClient"]

_WRITTEN_AT_ONCE_BYTES: Final = 256 * 1024
"""So much is put together and written by ourselves: a call of the operating system costs more than the copy."""

_log = structlog.get_logger(__name__)


class LinkClient(Client):
    """One life of the library's connection, with a reader and a writer that cost a fraction of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.received = 0
        # Whatever is no message is seldom, and the library's to understand.
        frames = FrameReader(self._take, Parser(self).parse)
        self._ps = cast("Parser", frames)
        self._socket = _Transport(frames.take)
        self._transport = self._socket
        self._takers: dict[int, Callable[[Message], None]] = {}
        self._write_is_due = False

    def send(self, *pieces: bytes) -> None:
        """Write a frame with whatever else is sent in this turn of the loop. Raises ``ConnectionClosedError``."""
        if not self.is_connected:
            raise nats_errors.ConnectionClosedError
        # The library's own commands wait in the same list, so that nothing overtakes anything.
        self._pending.extend(pieces)
        self._pending_data_size += sum(map(len, pieces))
        if not self._write_is_due:
            self._write_is_due = True
            self._socket.measure()
            asyncio.get_running_loop().call_soon(self._write)

    def listen(self, sid: int, take: Callable[[Message], None]) -> None:
        """Hand the messages of a subscription to ``take``."""
        self._takers[sid] = take

    def forget(self, sid: int) -> None:
        """Hand on nothing more of it."""
        self._takers.pop(sid, None)

    def abort(self) -> None:
        """Drop the socket, and what is unsent with it."""
        self._socket.abort()

    @property
    def taken_bytes(self) -> int:
        """What the operating system has taken."""
        return self._socket.written_bytes - self._socket.unsent_bytes

    @property
    def unsent_bytes(self) -> int:
        """What was accepted and the operating system has not taken yet."""
        return self.pending_data_size + self._socket.unsent_bytes

    @property
    def backlog_bytes(self) -> int:
        """At least what is unsent; measured once in each turn of the loop, which is cheaper than asking each time."""
        return self._pending_data_size + self._socket.behind_bytes

    def _write(self) -> None:
        self._write_is_due = False
        if self.unsent_bytes > _WRITTEN_AT_ONCE_BYTES:
            # Into a socket that is behind each write would copy its backlog: the library's flusher waits for it first.
            self._wake_flusher()
            return
        pieces, self._pending = self._pending, []
        self._pending_data_size = 0
        # A socket that is closed already says so; whoever reads from it tells of the loss.
        with contextlib.suppress(RuntimeError):
            self._socket.write(b"".join(pieces))

    def _wake_flusher(self) -> None:
        queue = self._flush_queue
        if queue is not None and queue.empty():
            queue.put_nowait(asyncio.get_running_loop().create_future())

    def _take(self, sid: int, message: Message) -> None:
        self.received += 1
        take = self._takers.get(sid)
        if take is None:
            return
        try:
            take(message)
        except Exception:  # noqa: BLE001 - a raise here would end the library's read loop and leave everybody deaf
            _log.exception("wire_callback_failed", subject=message.subject)

    def _connect_command(self) -> bytes:
        # The library would go on in plain text where the server offers no TLS, and send the token with it.
        if "tls" in self.options and not self._server_info.get("tls_required", False):
            raise nats_errors.SecureConnWantedError
        return super()._connect_command()


class _Transport(TcpTransport):
    """The library's socket, with a way to drop it that does not wait for unsent bytes on a dead link.

    Whole messages go to ``take`` as they arrive, past the library's read loop: see ``ReadTap``.
    """

    def __init__(self, take: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self.written_bytes = 0
        self.behind_bytes = 0
        self._take = take
        self._tap: ReadTap | None = None

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        await super().connect(uri, buffer_size, connect_timeout)
        self._put_tap()

    async def connect_tls(
        self, uri: str | ParseResult, ssl_context: SSLContext, buffer_size: int, connect_timeout: int
    ) -> None:
        await super().connect_tls(uri, ssl_context, buffer_size, connect_timeout)
        self._put_tap()

    async def read(self, buffer_size: int) -> bytes:
        tap = self._tap
        assert tap is not None, "connected first"
        tap.wait()
        try:
            # It gives others a turn only where nothing is kept for it.
            return await super().read(buffer_size)
        finally:
            tap.go_on()

    def _put_tap(self) -> None:
        reader = self._io_reader
        assert reader is not None, "connected first"
        self._tap = ReadTap(self._take, reader.feed_data)
        reader.feed_data = cast("Any", self._tap.feed)

    def abort(self) -> None:
        for writer in (self._io_writer, self._bare_io_writer):
            if writer is not None:
                with contextlib.suppress(RuntimeError):
                    writer.transport.abort()

    def write(self, payload: bytes) -> None:
        self._count(len(payload))
        super().write(payload)

    def writelines(self, payload: list[bytes]) -> None:
        self._count(sum(map(len, payload)))
        super().writelines(payload)

    def measure(self) -> None:
        self.behind_bytes = self.unsent_bytes

    def _count(self, more_bytes: int) -> None:
        self.written_bytes += more_bytes
        self.behind_bytes += more_bytes

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._io_writer is None else self._io_writer.transport.get_write_buffer_size()

    def __bool__(self) -> bool:
        # The library replaces a transport that is not connected yet by its own.
        return True
