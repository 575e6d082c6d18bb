"""``crewlet seats pause`` and ``crewlet seats resume``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from crewlet.cli.client import ApiClient, environment, segment
from crewlet.cli.plain_text import one_line
from crewlet.cli.read_commands import print_json
from crewlet.cli.whereabouts import find_node

__all__ = ["seats_pause", "seats_resume"]


def seats_pause(options: argparse.Namespace) -> int:
    """Pause a seat, and say what stands."""
    return asyncio.run(_pause(options))


def seats_resume(options: argparse.Namespace) -> int:
    """Resume a seat, and say what that ended."""
    return asyncio.run(_resume(options))


async def _pause(options: argparse.Namespace) -> int:
    wanted = {"reason": options.reason, "stop_running": options.stop_running}
    answer = await _ask(options, "pause", wanted)
    if options.json:
        print_json(answer)
        return 0
    pause = answer["paused"]
    how = "is paused" if answer["changed"] else "was paused already,"
    ends = "; the running turn ends at its next step" if pause["stop_running"] and answer["changed"] else ""
    sys.stdout.write(f"{options.seat} {how} {_since(pause)}{ends}\n")
    return 0


async def _resume(options: argparse.Namespace) -> int:
    answer = await _ask(options, "resume", {})
    if options.json:
        print_json(answer)
        return 0
    ended = answer["ended"]
    said = "was not paused" if ended is None else f"goes on; it was paused {_since(ended)}"
    sys.stdout.write(f"{options.seat} {said}\n")
    return 0


async def _ask(options: argparse.Namespace, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
    async with ApiClient(find_node(options.url, options.config, environment())) as api:
        return await api.post(f"/seats/{segment(options.seat)}/{verb}", body)


def _since(pause: Mapping[str, Any]) -> str:
    why = f": {one_line(pause['reason'])}" if pause["reason"] else ""
    return f"by {pause['by']} since {pause['at']}{why}"
