"""Ports for servers under test, of a range that nobody is given by the operating system."""

from __future__ import annotations

import os
import socket
from itertools import count
from typing import Final

__all__ = ["free_port", "free_ports"]

_FIRST: Final = 12_000
_HOW_MANY: Final = 20_000
_STEP: Final = 509
"""Processes that were started one after another begin far from each other."""
_tried: Final = count(os.getpid() * _STEP)


def free_port() -> int:
    """A port that nothing on loopback listens on at this moment, and that this process was not given before.

    What the operating system hands out itself lies higher: between a test's question and its server's start no
    connection, and no server that takes any port, gets this one.
    """
    while True:
        port = _FIRST + next(_tried) % _HOW_MANY
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def free_ports(how_many: int) -> list[int]:
    """As many of them, all different."""
    return [free_port() for _ in range(how_many)]
