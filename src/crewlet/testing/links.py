"""A link between a client and a broker that a test can cut, freeze, or make one-way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from crewlet.base.tasks import Tasks

__all__ = ["LinkProxy", "proxied"]

_CHUNK_BYTES = 64 * 1024


class LinkProxy:
    """Forwards TCP to a broker on loopback.

    ``freeze`` stops forwarding without a sign to either side, as a cable pulled somewhere on the way would; ``drop``
    closes what is connected; ``swallow_replies`` lets requests through and loses what comes back.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._tasks = Tasks("link_proxy")
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.swallow_replies = False
        self.swallowed_bytes = 0
        self.refuse = False

    @property
    def url(self) -> str:
        """Where a client connects."""
        assert self._server is not None
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        """Listen on a free port of loopback."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        """Stop listening and drop every link."""
        if self._server is not None:
            self._server.close()
        self.drop()
        await self._tasks.close()

    def freeze(self) -> None:
        """Forward nothing from now on."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Forward again, what was held back first."""
        self._flowing.set()

    def drop(self) -> None:
        """Close every link that stands."""
        for writer in [*self._writers]:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self.refuse:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(up_writer)
        self._tasks.start("up", self._pump(reader, up_writer, replies=False))
        self._tasks.start("down", self._pump(up_reader, writer, replies=True))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, replies: bool) -> None:
        try:
            with contextlib.suppress(OSError):
                while chunk := await reader.read(_CHUNK_BYTES):
                    await self._flowing.wait()
                    if replies and self.swallow_replies:
                        self.swallowed_bytes += len(chunk)
                    else:
                        writer.write(chunk)
                        await writer.drain()
        finally:
            writer.transport.abort()
            self._writers.discard(writer)


@asynccontextmanager
async def proxied(target_port: int) -> AsyncGenerator[LinkProxy]:
    """A proxy in front of ``target_port``, closed at the end."""
    proxy = LinkProxy(target_port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
