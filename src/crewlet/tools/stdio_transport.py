"""The protocol's messages over the pipes of a server's process, one JSON text a line. Imports the SDK: import late."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from crewlet.base import limits
from crewlet.tools.line_reader import LineTooLong, read_lines
from crewlet.tools.server_process import ServerProcess

__all__ = ["stdio_transport"]


@asynccontextmanager
async def stdio_transport(
    process: ServerProcess, on_end: Callable[[str], None], on_stray: Callable[[], None]
) -> AsyncGenerator[TransportStreams]:
    """The two streams of a session. ``on_end`` is told once the wire has ended, with the reason where one is known.

    ``on_stray`` is told of each line that is no message. The process is not ended here: who started it stops it.
    """
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as pumps:
        pumps.start_soon(_read, process, incoming, on_end, on_stray)
        pumps.start_soon(_write, process, outgoing, on_end)
        try:
            yield read_stream, write_stream
        finally:
            pumps.cancel_scope.cancel()
            for stream in (read_stream, write_stream, incoming, outgoing):
                stream.close()


async def _read(
    process: ServerProcess,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    on_end: Callable[[str], None],
    on_stray: Callable[[], None],
) -> None:
    reason = ""
    with incoming:
        try:
            async for line in read_lines(process.stdout, max_bytes=limits.TOOL_SERVER_MESSAGE_MAX_BYTES):
                if not line.strip():
                    continue
                message = _parse(line)
                if message is None:
                    on_stray()
                else:
                    await incoming.send(message)
        except LineTooLong as too_long:
            reason = f"it sent {too_long}"
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            pass  # The session or the pipe is gone, which is what the end of this wire says too.
    on_end(reason)


async def _write(
    process: ServerProcess, outgoing: MemoryObjectReceiveStream[SessionMessage], on_end: Callable[[str], None]
) -> None:
    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(f"{text}\n".encode())
            await process.stdin.drain()
    except (ConnectionError, RuntimeError):
        on_end("")  # It closed its stdin: whoever waits for an answer must not wait for ever.


def _parse(line: bytes) -> SessionMessage | None:
    """The message of a line; ``None`` for the banners and log lines that some servers print to stdout."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None
