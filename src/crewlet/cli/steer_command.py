"""``crewlet steer``."""

from __future__ import annotations

import argparse
import asyncio
import sys

from crewlet.cli.client import ApiClient, environment, segment
from crewlet.cli.read_commands import print_json
from crewlet.cli.whereabouts import find_node

__all__ = ["steer"]


def steer(options: argparse.Namespace) -> int:
    """Tell a running turn something, and say that it was taken."""
    return asyncio.run(_steer(options))


async def _steer(options: argparse.Namespace) -> int:
    async with ApiClient(find_node(options.url, options.config, environment())) as api:
        answer = await api.post(f"/turns/{segment(options.turn)}/steer", {"note": options.note})
    if options.json:
        print_json(answer)
    else:
        sys.stdout.write(f"taken: the turn reads it at its next round (note {answer['note_id']})\n")
    return 0
