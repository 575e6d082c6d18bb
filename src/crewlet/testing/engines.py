"""Real engines for tests: processes of their own, awaited by condition, killed or asked to end, never left behind.

Needs ``psutil``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from crewlet.base.clock import SystemClock
from crewlet.base.tasks import Tasks
from crewlet.testing.engine_api import EngineApi
from crewlet.testing.engine_files import EngineFiles
from crewlet.testing.engine_processes import StartedProcess, end_processes, processes_below, running
from crewlet.testing.waiting import BUSY_TIMES, wait_until

__all__ = ["CREWLET", "CommandResult", "Engine", "run_command", "running_engine"]

CREWLET: Final = (sys.executable, "-m", "crewlet")
"""The ``crewlet`` command, run by this interpreter."""
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")
_CHUNK_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


class Engine:
    """One engine process. Use :func:`running_engine`, or ``start`` and ``close``.

    ``command`` replaces ``crewlet run``; the options that name the files follow it. ``socket`` leads to its API where
    the port does not.
    """

    def __init__(
        self,
        files: EngineFiles,
        *,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
        socket: Path | None = None,
    ) -> None:
        self.files = files
        self.api = EngineApi(files.url, files.token_file, socket=socket)
        self._command = tuple(command) or (*CREWLET, "run")
        self._environment = _environment(environment or {})
        self._process: asyncio.subprocess.Process | None = None
        self._seen: frozenset[StartedProcess] = frozenset()
        self._said: dict[str, list[bytes]] = {"out": [], "err": []}
        self._tasks = Tasks("engine_under_test")
        self._spawned_at: datetime | None = None

    async def start(self) -> Self:
        """Start the process and listen to it; nothing is awaited yet."""
        self._spawned_at = SystemClock().now()
        self._process = await asyncio.create_subprocess_exec(
            *[*self._command, *self.files.run_options],
            cwd=self.files.directory,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self._tasks.start("out", self._listen(self._process.stdout, self._said["out"]))
        self._tasks.start("err", self._listen(self._process.stderr, self._said["err"]))
        return self

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._running_process().pid

    @property
    def spawned_at(self) -> datetime:
        """When the command was given."""
        assert self._spawned_at is not None, "it was never started"
        return self._spawned_at

    @property
    def exit_code(self) -> int | None:
        """Its exit code, ``None`` while it runs; minus the signal's number where one ended it."""
        return self._running_process().returncode

    @property
    def out(self) -> str:
        """What it wrote to standard output so far."""
        return b"".join(self._said["out"]).decode(errors="replace")

    @property
    def err(self) -> str:
        """What it wrote to standard error so far."""
        return b"".join(self._said["err"]).decode(errors="replace")

    async def ready(self, *, timeout_s: float = 30.0) -> None:
        """Return once the node may be sent work and its children are known. Raises ``AssertionError`` if it ends."""

        async def is_ready() -> bool:
            assert self.exit_code is None, f"the engine ended with {self.exit_code}:\n{self.err}"
            return await self.api.is_ready()

        try:
            await wait_until(is_ready, what="readiness", timeout_s=timeout_s)
        except TimeoutError as late:
            message = f"the engine is not ready:\n{self.err}"
            raise TimeoutError(message) from late
        self.processes()

    async def says(self, words: str, *, timeout_s: float = 20.0) -> None:
        """Return once its standard error holds ``words``."""
        await wait_until(lambda: words in self.err, what=f"{words!r} on standard error", timeout_s=timeout_s)

    def processes(self) -> frozenset[StartedProcess]:
        """What it started and runs now: its broker and its tool servers."""
        found = processes_below(self.pid)
        self._seen |= found
        return found

    def broker(self) -> StartedProcess:
        """Its broker. Raises ``StopIteration`` where it runs none."""
        return next(each for each in self.processes() if each.is_broker)

    def left_behind(self) -> frozenset[StartedProcess]:
        """Of everything that it was ever seen to have started, what runs now."""
        return running(self._seen)

    async def gone(self, *, within_s: float = 2.0) -> None:
        """Return once nothing that it started runs any more. Raises ``TimeoutError``."""
        await wait_until(
            lambda: not self.left_behind(), what="the end of its children", timeout_s=within_s, exactly=True
        )

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._running_process().send_signal(number)

    async def kill(self) -> None:
        """End it as ``kill -9`` does."""
        self.processes()
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        await self.ended()

    async def drained(self, *, timeout_s: float = 30.0) -> int:
        """Ask it to end as Ctrl-C does; its exit code."""
        self.processes()
        self.signal(signal.SIGINT)
        return await self.ended(timeout_s=timeout_s)

    async def ended(self, *, timeout_s: float = 30.0) -> int:
        """Its exit code, once it has ended. Raises ``TimeoutError``, as late as ``wait_until`` does."""
        async with asyncio.timeout(BUSY_TIMES * timeout_s):
            return await self._running_process().wait()

    async def close(self) -> None:
        """End it and whatever it left behind, by their ids."""
        if self._process is not None and self._process.returncode is None:
            await self.kill()
        end_processes(self._seen)
        await self.api.aclose()
        await self._tasks.close()

    async def _listen(self, stream: asyncio.StreamReader | None, said: list[bytes]) -> None:
        assert stream is not None, "the process was started with a pipe"
        while chunk := await stream.read(_CHUNK_BYTES):
            said.append(chunk)

    def _running_process(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "it was never started"
        return self._process


@asynccontextmanager
async def running_engine(
    files: EngineFiles, *, environment: Mapping[str, str] | None = None, command: Sequence[str] = ()
) -> AsyncGenerator[Engine]:
    """An engine that is ready for work; whatever becomes of it, nothing of it is left at the end."""
    engine = Engine(files, environment=environment, command=command)
    try:
        await engine.start()
        await engine.ready()
        yield engine
    finally:
        await engine.close()


async def run_command(
    *arguments: str,
    cwd: os.PathLike[str],
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = CREWLET,
    timeout_s: float = 40.0,
) -> CommandResult:
    """Run one ``crewlet`` command to its end. Raises ``TimeoutError`` after killing one that does not end.

    It is given more than ``timeout_s``, as by ``wait_until``.
    """
    process = await asyncio.create_subprocess_exec(
        *[*program, *arguments],
        cwd=cwd,
        env=_environment(environment or {}),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(BUSY_TIMES * timeout_s):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            below = processes_below(process.pid)
            process.kill()
            await process.wait()
            end_processes(below)
    return CommandResult(process.returncode or 0, out.decode(), err.decode())


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Little of ours: a key of a model that this shell happens to hold must not make a test speak to a vendor."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | dict(given)
