"""One run of the broker program: started, awaited until it listens, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crewlet.backends.nats.binary import ServerBinary
from crewlet.backends.nats.server_config import ServerSettings, server_config, server_environment
from crewlet.base import limits
from crewlet.base.errors import StartRefused

__all__ = ["ServerFiles", "ServerProcess"]

_POLL_S: Final = 0.005
_PROGRESS: Final = " [INF] "
_PORTS_TAKEN: Final = {
    "Error listening on router port": ("the cluster's members", "stream.cluster.port"),
    "Error listening on leafnode port": ("satellites", "stream.leaf.port"),
}


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """Where one broker keeps what."""

    directory: Path

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.directory / "broker.conf"

    @property
    def log(self) -> Path:
        """What it logs; it rotates the file itself."""
        return self.directory / "broker.log"

    @property
    def output(self) -> Path:
        """What it prints beside the log: a refused configuration, a panic."""
        return self.directory / "broker.out"

    @property
    def ports(self) -> Path:
        """The directory that it writes its ports into."""
        return self.directory / "ports"

    def prepare(self, config: str) -> None:
        """Write the configuration and clear what an earlier run left. Raises ``OSError``."""
        shutil.rmtree(self.ports, ignore_errors=True)
        self.ports.mkdir(mode=0o700)
        self.config.write_text(config, encoding="utf-8")
        self.output.write_bytes(b"")

    def tail(self) -> list[str]:
        """The last lines of what it said, without the ones that only report progress."""
        lines = [*_last_lines(self.log), *_last_lines(self.output)]
        return [line for line in lines if _PROGRESS not in line][-limits.BROKER_LOG_TAIL_LINES :]


class ServerProcess:
    """A running broker program."""

    def __init__(self, process: asyncio.subprocess.Process, files: ServerFiles, watch_fd: int) -> None:
        self._process = process
        self._files = files
        self._watch_fd = watch_fd

    @classmethod
    async def launch(
        cls, binary: ServerBinary, settings: ServerSettings, files: ServerFiles, *, inherit: Sequence[int]
    ) -> tuple[ServerProcess, int]:
        """Start the program and return it with the port it listens on. Raises ``StartRefused`` with its last words.

        The descriptors of ``inherit`` stay open in it. It dies with this process, whatever ends this process.
        """
        await asyncio.to_thread(files.prepare, server_config(settings))
        server = await cls._spawn(binary, files, inherit, {**os.environ, **server_environment(settings)})
        # A member may have a cluster's stores to look through first.
        alone = settings.cluster is None
        try:
            return server, await server.wait_listening(
                limits.BROKER_START_TIMEOUT_S if alone else limits.MEMBER_START_TIMEOUT_S
            )
        except BaseException:
            await server.stop()
            raise

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._process.pid

    async def wait_listening(self, timeout_s: float = limits.BROKER_START_TIMEOUT_S) -> int:
        """Return the port it listens on. Raises ``StartRefused`` when it ends, or takes too long, before it does."""
        try:
            async with asyncio.timeout(timeout_s):
                while (port := self._port()) is None:
                    if self._process.returncode is not None:
                        raise await self._refusal(f"ended with code {self._process.returncode} before it listened")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            raise await self._refusal(f"did not listen within {timeout_s:g} s") from error
        return port

    async def wait(self) -> int:
        """Return its exit code once it has ended."""
        code = await self._process.wait()
        self._dismiss_watcher()
        return code

    async def stop(self) -> None:
        """End it: asked first, killed when it has not gone in time."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(limits.BROKER_STOP_TIMEOUT_S):
                await self.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self.wait()

    async def last_words(self) -> list[str]:
        """The last lines of what it said."""
        return await asyncio.to_thread(self._files.tail)

    @classmethod
    async def _spawn(
        cls, binary: ServerBinary, files: ServerFiles, inherit: Sequence[int], environment: Mapping[str, str]
    ) -> ServerProcess:
        output = os.open(files.output, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        read_end, watch_fd = (-1, -1) if _kernel_can_tie() else os.pipe()
        tether = [sys.executable, "-I", "-S", str(Path(__file__).with_name("tether.py")), str(os.getpid())]
        try:
            process = await asyncio.create_subprocess_exec(
                *[*tether, str(read_end), str(binary.path), "-c", str(files.config)],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                pass_fds=[*inherit, *([read_end] if read_end >= 0 else [])],
                # A Ctrl-C at the terminal goes to the engine alone: it drains with the broker still there.
                start_new_session=True,
            )
        except BaseException:
            _close(watch_fd)
            raise
        finally:
            _close(output)
            _close(read_end)
        return cls(process, files, watch_fd)

    def _port(self) -> int | None:
        # The broker renames the finished file into place, under a name that carries its process id.
        for path in self._files.ports.glob(f"*_{self.pid}.ports"):
            with contextlib.suppress(OSError, ValueError, LookupError):
                return int(json.loads(path.read_text())["nats"][0].rpartition(":")[2])
        return None

    async def _refusal(self, what: str) -> StartRefused:
        words = "\n".join(await self.last_words())
        for said, (who, setting) in _PORTS_TAKEN.items():
            if said in words:
                raise StartRefused(
                    f"another process listens where {who} would reach this broker:\n{words}",
                    f"give {setting} another number, or end that process",
                )
        return StartRefused(f"the embedded broker {what}; its last words:\n{words}", f"see {self._files.log}")

    def _dismiss_watcher(self) -> None:
        fd, self._watch_fd = self._watch_fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.write(fd, b".")
            os.close(fd)


def _kernel_can_tie() -> bool:
    # The signal comes when the starting thread ends, so only the main thread, whose id is the process's, will do.
    return sys.platform == "linux" and threading.get_native_id() == os.getpid()


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)


def _last_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 200 * limits.BROKER_LOG_TAIL_LINES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-limits.BROKER_LOG_TAIL_LINES :]
