"""``crewlet budgets show``: what the company and its seats have spent of their token budgets."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from crewlet.cli.client import ApiClient, environment
from crewlet.cli.read_commands import print_json, print_table
from crewlet.cli.whereabouts import find_node

__all__ = ["budgets_show"]

Row = Mapping[str, Any]


def budgets_show(options: argparse.Namespace) -> int:
    """Print the windows that have a ceiling, and the company's; 1 where the counters could not be read."""
    return asyncio.run(_show(options))


async def _show(options: argparse.Namespace) -> int:
    async with ApiClient(find_node(options.url, options.config, environment())) as api:
        answer = await api.get("/budgets")
    if options.json:
        print_json(answer)
    else:
        header = ("SCOPE", "WINDOW", "LABEL", "USED", "CEILING", "STATE", "LAST REFUSAL", "TURNS OVER")
        print_table([header, *_rows(answer, show_all=options.all)])
    if not answer["durable"]:
        sys.stderr.write("crewlet: the counters could not be read: what was spent is not known\n")
    return 0 if answer["durable"] else 1


def _rows(answer: Row, *, show_all: bool) -> list[tuple[str, ...]]:
    return [
        _row(scope, window)
        for scope in cast("Sequence[Row]", answer["scopes"])
        for window in cast("Sequence[Row]", scope["windows"])
        if show_all or scope["scope"] == "org" or window["max"] is not None
    ]


def _row(scope: Row, window: Row) -> tuple[str, ...]:
    return (
        scope["handle"] or "(company)",
        window["period"],
        window["label"],
        "?" if window["used"] is None else str(window["used"]),
        "-" if window["max"] is None else str(window["max"]),
        window["state"],
        window["refused_at"] or "-",
        window["resets_at"],
    )
