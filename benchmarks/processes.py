"""Engines and floors as processes: started, their lines stamped as they come, ended by their ids."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import psutil

from crewlet.testing.engine_files import EngineFiles
from crewlet.testing.engine_processes import end_processes, processes_below

__all__ = ["Watched", "engine", "fields", "run_time_s"]

_PASSED_ON: Final = ("PATH", "HOME", "LANG", "TMPDIR")
_DEADLINE_S: Final = 60.0
_CLOCK = time.perf_counter


class Watched:
    """A process whose lines are read and stamped the moment they come; it ends when its input does, or as Ctrl-C asks.

    Both of its streams are read as one.
    """

    def __init__(self, command: Sequence[str], *, cwd: Path, interrupt: bool = False) -> None:
        self._interrupt = interrupt
        self._changed = threading.Condition()
        self._lines: list[tuple[float, str]] = []
        self._ended = False
        self._began = _CLOCK()
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None, "it was started with a pipe"
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def rss_bytes(self) -> int:
        """Its resident memory, that of its children left out."""
        return psutil.Process(self.pid).memory_info().rss

    def line(self, words: str, *, times: int = 1) -> tuple[float, str]:
        """Seconds from the start to the ``times``-th line that holds ``words``, and that line.

        Raises ``RuntimeError`` with everything said so far when the process ends before, or takes too long.
        """
        deadline = _CLOCK() + _DEADLINE_S
        with self._changed:
            while True:
                found = [(at, line) for at, line in self._lines if words in line]
                if len(found) >= times:
                    at, line = found[times - 1]
                    return at - self._began, line
                left_s = deadline - _CLOCK()
                if self._ended or left_s <= 0:
                    said = "\n".join(line for _at, line in self._lines)
                    raise RuntimeError(f"no {words!r} ({times} times) from {self._process.args!r}:\n{said}")
                self._changed.wait(left_s)

    def heard_s(self, words: str, *, within_s: float) -> float | None:
        """When a line first came with ``words``, by the clock of :meth:`kill`; ``None`` if none comes in time."""
        deadline = _CLOCK() + within_s
        with self._changed:
            while True:
                found = next((at for at, line in self._lines if words in line), None)
                left_s = deadline - _CLOCK()
                if found is not None or self._ended or left_s <= 0:
                    return found
                self._changed.wait(left_s)

    def kill(self) -> float:
        """End it as ``kill -9`` does; the clock's reading at that moment."""
        at = _CLOCK()
        self._process.kill()
        self._process.wait()
        return at

    def tell(self, text: str) -> None:
        """Write to its standard input."""
        assert self._process.stdin is not None, "it was started with a pipe"
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def end(self) -> None:
        """Ask it to end; kill it, and what it leaves, when it does not."""
        below = processes_below(self.pid)
        assert self._process.stdin is not None, "it was started with a pipe"
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if self._interrupt:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        end_processes(below)
        self._reader.join(_DEADLINE_S)

    def _read(self, source: Iterable[str]) -> None:
        for line in source:
            at = _CLOCK()
            with self._changed:
                self._lines.append((at, line.rstrip()))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@contextmanager
def engine(files: EngineFiles) -> Generator[Watched]:
    """``crewlet run`` on these files, drained at the end. Its lines are its log."""
    command = [sys.executable, "-m", "crewlet", "run", *files.run_options]
    with Watched(command, cwd=files.directory, interrupt=True) as process:
        yield process


def run_time_s(command: Sequence[str]) -> float:
    """Seconds that a command takes from its start to its end. Raises ``CalledProcessError``."""
    began = _CLOCK()
    subprocess.run(command, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return _CLOCK() - began


def fields(line: str) -> Mapping[str, Any]:
    """The fields of a line of the engine's log."""
    return json.loads(line)


def _environment() -> dict[str, str]:
    """Little of ours: a model's key that this shell holds must not make the example company use a real one."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
