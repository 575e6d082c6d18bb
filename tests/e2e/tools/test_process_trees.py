"""Whatever a tool server started is gone when the server, the engine or the wrapper's caller ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import psutil
import pytest

from crewlet.testing import wait_until
from crewlet.tools import ToolHost, ToolServerSpec
from crewlet.tools import process_wrapper as wrapper
from tests.e2e.tools.conftest import HERE, below

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux alone")]

TREE = 6  # The launcher, three that forked twice, one that refuses to end, and the server.


def so_within(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return is_so()


def living(pids: set[int]) -> set[int]:
    alive: set[int] = set()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                alive.add(pid)
    return alive


def end(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def engine(*arguments: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, str(HERE / "engine_script.py"), *arguments]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextlib.contextmanager
def wrapped(*command: str) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    watched, watch = os.pipe()
    program = [sys.executable, "-I", "-S", wrapper.__file__, str(watched), str(os.getpid()), "0.3", "3", *command]
    started = subprocess.Popen(
        program, pass_fds=(watched,), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    os.close(watched)
    try:
        yield started, watch
    finally:
        with contextlib.suppress(OSError):
            os.close(watch)
        started.communicate(timeout=10)


@pytest.mark.parametrize("where", ["main", "thread"])
def test_a_killed_engine_takes_the_whole_tree_with_it_within_two_seconds(where: str) -> None:
    with engine("tree_server.py", where) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        whole = so_within(lambda: len(living(below() - {running.pid})) == TREE + 1, 5)  # And the wrapper.
        tree = below() - {running.pid}

        running.kill()
        gone = so_within(lambda: not living(tree), 2)
        end(living(tree))

    assert whole
    assert gone


async def test_a_closed_host_leaves_nothing_of_a_tree_that_refuses_to_end() -> None:
    host = ToolHost(environment={"PATH": "/usr/bin:/bin"})
    await host.start_shared([ToolServerSpec(name="tree", command=sys.executable, args=(str(HERE / "tree_server.py"),))])
    await wait_until(lambda: len(living(below())) == TREE + 1)
    tree = below()

    await host.close()

    left = living(tree)
    end(left)
    assert not left


def test_what_a_server_leaves_behind_goes_with_it(tmp_path: Path) -> None:
    left_behind = tmp_path / "pid"

    with wrapped("sh", "-c", f"setsid sleep 600 & echo $! > {left_behind}; exit 7") as (started, _):
        code = started.wait(5)

    pid = int(left_behind.read_text())
    left = living({pid})
    end(left)
    assert code == 7
    assert not left


def test_the_wrapper_keeps_no_end_of_the_wire() -> None:
    """Otherwise a server that closes its stdout, and lives on, would be waited for until each call's deadline."""
    with wrapped("sh", "-c", "exec >&-; cat >/dev/null") as (started, _):
        assert started.stdout is not None
        ready, _, _ = select.select([started.stdout], [], [], 5)

        assert ready
        assert started.stdout.read() == b""
        assert started.poll() is None


def test_the_wrapper_passes_the_wire_through() -> None:
    with wrapped("cat") as (started, _):
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write(b"line\n")
        started.stdin.close()
        echoed = started.stdout.read()
        code = started.wait(5)
        started.stdin = None

    assert echoed == b"line\n"
    assert code == 0


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_the_wrapper_ends_with_the_servers_code(command: str, code: int) -> None:
    with wrapped("sh", "-c", command) as (started, _):
        assert started.wait(5) == code


def test_the_wrapper_outlives_the_thread_that_started_it() -> None:
    """The parent-death signal follows a thread; only a dead process is a reason to end."""
    held: list[tuple[subprocess.Popen[bytes], int]] = []
    stack = contextlib.ExitStack()
    thread = threading.Thread(target=lambda: held.append(stack.enter_context(wrapped("cat"))))
    with stack:
        thread.start()
        thread.join()
        started, _ = held[0]
        assert started.stdin is not None
        assert started.stdout is not None

        started.stdin.write(b"alive\n")
        started.stdin.flush()
        echoed = started.stdout.readline()
        os.kill(started.pid, signal.SIGHUP)  # As the kernel does once the thread is gone.
        started.stdin.write(b"still\n")
        started.stdin.flush()
        again = started.stdout.readline()
        code = started.poll()

    assert (echoed, again) == (b"alive\n", b"still\n")
    assert code is None


def test_a_killed_wrapper_takes_the_server_with_it() -> None:
    with wrapped("sleep", "600") as (started, _):
        assert so_within(lambda: any(_is_sleep(child) for child in psutil.Process(started.pid).children()), 5)
        server = {child.pid for child in psutil.Process(started.pid).children()}

        started.kill()

        gone = so_within(lambda: not living(server), 2)
        end(living(server))

    assert gone


def _is_sleep(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.name() == "sleep"
    return False
