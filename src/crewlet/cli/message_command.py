"""``crewlet message``: how a message stands, for whoever did not wait for its answer."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from typing import Any, Final

from crewlet.cli.client import ApiClient, environment, segment
from crewlet.cli.plain_text import one_line, plain
from crewlet.cli.read_commands import print_json
from crewlet.cli.whereabouts import find_node

__all__ = ["message"]

_EXIT_OF_STATE: Final = {"answered": 0, "failed": 1, "skipped": 1}
_EXIT_NOT_FINAL: Final = 3


def message(options: argparse.Namespace) -> int:
    """Exit code 0 when answered, 1 when it failed or nothing was to be done, 3 while it is at work or waits."""
    return asyncio.run(_message(options))


async def _message(options: argparse.Namespace) -> int:
    async with ApiClient(find_node(options.url, options.config, environment())) as api:
        view = await api.get(f"/messages/{segment(options.id)}")
    if options.json:
        print_json(view)
    else:
        _tell(view)
    return _EXIT_OF_STATE.get(view["state"], _EXIT_NOT_FINAL)


def _tell(view: Mapping[str, Any]) -> None:
    why = f": {one_line(view['reason'])}" if view["reason"] else ""
    sys.stderr.write(f"crewlet: {view['handle']}: {view['state']}{why}\n")
    silent = [each["id"] for each in view["coverage"]["nodes"] if not each["answered"]]
    if silent:
        sys.stderr.write(f"crewlet: without what {', '.join(silent)} may know: no answer from there\n")
    # What was said before a colleague was asked is no answer yet.
    if view["answer"] and view["state"] in _EXIT_OF_STATE:
        sys.stdout.write(f"{plain(view['answer'])}\n")
