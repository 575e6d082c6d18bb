"""The real ``crewlet`` with two more sources: the board and the chat of the test kit."""

from __future__ import annotations

import sys
from dataclasses import replace

from crewlet.cli import main
from crewlet.node import Node, NodeSettings
from crewlet.testing.played_sources import PlayedBoard, PlayedChat

_boot = Node.boot


async def boot(settings: NodeSettings) -> Node:
    return await _boot(replace(settings, sources=(PlayedBoard(), PlayedChat())))


if __name__ == "__main__":
    Node.boot = boot
    sys.exit(main(sys.argv[1:]))
