"""The process of one stdio tool server, behind the wrapper that takes its whole tree down with the engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Final

import structlog

from crewlet.base import limits
from crewlet.base.tasks import Tasks
from crewlet.tools.line_reader import read_clipped_lines
from crewlet.tools.server_spec import ToolServerSpec

__all__ = ["ServerProcess", "running_process"]

_log = structlog.get_logger(__name__)
Clean = Callable[[str], str]

_EXIT_POLL_S: Final = 0.01
_WRAPPER: Final = Path(__file__).with_name("process_wrapper.py")


class ServerProcess:
    """A running server. Whoever started it calls :meth:`stop`, on every path; a dead engine needs nobody to.

    Started by :class:`subprocess.Popen`, not by asyncio: the latter's transport kills what it started when it is
    collected, and a wrapper killed in the middle of its work leaves the server's tree behind.
    """

    def __init__(self, wrapper: subprocess.Popen[bytes], watch: int, name: str, seat: str, clean: Clean) -> None:
        self.stdin: asyncio.StreamWriter
        self.stdout: asyncio.StreamReader
        self._wrapper = wrapper
        self._watch: int | None = watch
        self._server = name
        self._seat = seat
        self._clean = clean
        self._pipes: list[asyncio.BaseTransport] = []
        self._last_words: list[asyncio.Task[None]] = []
        self._tail: deque[str] = deque(maxlen=limits.TOOL_SERVER_STDERR_TAIL_LINES)
        self._tasks = Tasks(f"tool_server_process:{name}")

    @property
    def pid(self) -> int:
        """The wrapper's pid; the server is its child."""
        return self._wrapper.pid

    @property
    def exit_code(self) -> int | None:
        """The server's code, or 128 plus a signal's number; ``None`` while it runs."""
        return self._wrapper.poll()

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last lines that it wrote to stderr, clean."""
        return tuple(self._tail)

    async def attach(self) -> None:
        """Put the three pipes on the event loop, and begin to read stderr."""
        assert self._wrapper.stdin is not None
        assert self._wrapper.stdout is not None
        assert self._wrapper.stderr is not None
        self.stdin = await self._writer(self._wrapper.stdin)
        self.stdout = await self._reader(self._wrapper.stdout)
        stderr = await self._reader(self._wrapper.stderr)
        self._last_words.append(self._tasks.start("stderr", self._read_stderr(stderr)))

    async def stop(self) -> None:
        """End it: its stdin closes, then the wrapper is told, then killed. Bounded; nothing of the tree is left.

        Where this is cancelled the wrapper has been told, and ends the tree on its own.
        """
        try:
            self.stdin.close()  # The protocol's way to say that it is over.
            self._last_words.append(self._tasks.start("drain", self._drain()))
            if not await self._exited_within(limits.TOOL_SERVER_EXIT_WAIT_S):
                self._tell_wrapper()
                if not await self._exited_within(limits.TOOL_SERVER_KILL_WAIT_S):
                    _log.warning("tool_server_wrapper_killed", server=self._server, seat=self._seat, pid=self.pid)
                    self._wrapper.kill()
                    await self._exited_within(limits.TOOL_SERVER_KILL_WAIT_S)
            await asyncio.wait(self._last_words, timeout=limits.TOOL_SERVER_EXIT_WAIT_S)
        finally:
            self.let_go()
            await self._tasks.close()

    def let_go(self) -> None:
        """Tell the wrapper to end the tree, without waiting for it, and close the pipes."""
        self._tell_wrapper()
        for pipe in self._pipes:
            pipe.close()

    def _tell_wrapper(self) -> None:
        if self._watch is not None:
            os.close(self._watch)
            self._watch = None

    async def _exited_within(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._wrapper.poll() is None:
            if loop.time() >= until:
                return False
            await asyncio.sleep(_EXIT_POLL_S)
        return True

    async def _drain(self) -> None:
        # A server that is stuck writing its last words cannot read that its stdin has ended.
        with contextlib.suppress(ConnectionError):
            while await self.stdout.read(64 * 1024):
                pass

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        async for line in read_clipped_lines(stderr, max_bytes=limits.TOOL_SERVER_STDERR_LINE_MAX_BYTES):
            text = self._clean(line.decode(errors="replace")).rstrip()
            if text:
                self._tail.append(text)
                _log.debug("server_stderr", server=self._server, seat=self._seat, line=text)

    async def _reader(self, pipe: IO[bytes]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._pipes.append(transport)
        return reader

    async def _writer(self, pipe: IO[bytes]) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: protocol, pipe)
        self._pipes.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)


@asynccontextmanager
async def running_process(
    spec: ToolServerSpec, environment: Mapping[str, str], *, seat: str, clean: Clean
) -> AsyncGenerator[ServerProcess]:
    """Its process, running inside and gone after.

    Raises ``OSError`` where not even the wrapper starts (its folder does not exist). A program that does not exist
    shows as an exit with code 127 and a line on stderr.
    """
    watched, watch = os.pipe()
    try:
        wrapper = subprocess.Popen(  # noqa: ASYNC220 - a fork takes a millisecond, and must come from this thread:
            # the signal of a parent's death follows the thread that started the child.
            _command_line(spec, watched),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=spec.cwd or None,
            pass_fds=(watched,),
            start_new_session=True,
        )
    except BaseException:
        os.close(watch)
        raise
    finally:
        os.close(watched)
    process = ServerProcess(wrapper, watch, spec.name, seat, clean)
    try:
        await process.attach()
    except BaseException:
        process.let_go()
        raise
    try:
        yield process
    finally:
        await process.stop()


def _command_line(spec: ToolServerSpec, watched: int) -> list[str]:
    bounds = (limits.TOOL_SERVER_TERM_GRACE_S, limits.TOOL_SERVER_KILL_WAIT_S / 2)
    wrapper = [sys.executable, "-I", "-S", str(_WRAPPER), str(watched), str(os.getpid()), *map(str, bounds)]
    return [*wrapper, spec.command, *spec.args]
