"""A tool server that behaves like the worst launcher: its processes fork twice, leave their session, refuse SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def stubborn() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        time.sleep(60)


def fork_twice() -> None:
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.setsid()
    stubborn()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(3):
        fork_twice()
    if os.fork() == 0:
        stubborn()
    # As npx does: the server is the launcher's child, and has the wire.
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, str(Path(__file__).with_name("odd_server.py"))])
    stubborn()
