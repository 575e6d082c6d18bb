"""``crewlet seats`` and ``crewlet events``: what is, and what happened."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from crewlet.cli.client import ApiClient, environment
from crewlet.cli.plain_text import one_line
from crewlet.cli.whereabouts import find_node

__all__ = ["events", "print_json", "print_table", "seats"]

_SNAPSHOTS: Final = frozenset({"budget_meters"})
"""Told every few seconds whether or not anything happened; shown to whoever asks for them by their type."""


def seats(options: argparse.Namespace) -> int:
    """Print every seat: who holds it, what it does, what went wrong last."""
    return asyncio.run(_seats(options))


def events(options: argparse.Namespace) -> int:
    """Print the newest events, oldest of them first; with ``--follow`` go on until Ctrl-C."""
    return asyncio.run(_events(options))


async def _seats(options: argparse.Namespace) -> int:
    async with ApiClient(find_node(options.url, options.config, environment())) as api:
        answer = await api.get("/seats")
    rows = cast("list[dict[str, Any]]", answer["seats"])
    if options.json:
        print_json(answer)
        return 0
    header = ("SEAT", "KIND", "NAME", "UNIT", "STATE", "TURN", "MODELS", "LAST ERROR")
    print_table([header, *(_seat_row(row) for row in rows)])
    return 0


def _seat_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    models = ", ".join(row["models"]) + ("" if row["models_are_real"] or not row["models"] else " (not a real model)")
    state = row["activity"] or "-"
    if row["kind"] == "agent" and not row["held_here"] and row["stopped_reason"] != "paused":
        state = "not held here"
    if row["paused"]:
        state = f"{'paused' if row['activity'] == 'stopped' else f'{state}, paused'} {_by_whom(row['paused'])}"
    elif state == "stopped":
        state = f"stopped ({row['stopped_reason']})"
    said = (row["unit"], state, row["turn_id"], models, row["last_error"])
    return (row["handle"], row["kind"], row["name"], *(each or "-" for each in said))


def _by_whom(pause: Mapping[str, Any]) -> str:
    why = f": {one_line(pause['reason'])}" if pause["reason"] else ""
    return f"by {pause['by']}{why}"


async def _events(options: argparse.Namespace) -> int:
    async with (
        ApiClient(find_node(options.url, options.config, environment())) as api,
        contextlib.AsyncExitStack() as stack,
    ):
        # The feed is opened before the page is read, so that nothing falls between the two.
        frames = await stack.enter_async_context(api.stream()) if options.follow else None
        query = {"type": options.type, "seat": options.seat, "limit": str(options.limit)}
        page = await api.get("/events", query)
        shown = {row["id"] for row in page["events"]}
        for row in reversed(page["events"]):
            _print_event(row, as_json=options.json)
        if not page["events"]:
            sys.stderr.write(f"crewlet: {_nothing_of(options)}\n")
        if frames is None:
            return 0
        async for frame in frames:
            event = cast("dict[str, Any]", frame["data"]) if frame.get("kind") == "event" else {}
            if event and event.get("id") not in shown and _wanted(event, options):
                _print_event(event, as_json=options.json)
    return 0


def _nothing_of(options: argparse.Namespace) -> str:
    """That nothing was found is said, and not on the output: a misspelt type or seat would look like a quiet night."""
    wanted = [f"of {what} {name!r}" for what, name in (("type", options.type), ("seat", options.seat)) if name]
    names = " (is the name right? `crewlet events` and `crewlet seats` show names)" if wanted else ""
    return f"{' '.join(['no event', *wanted])} in this node's log{names}"


def _wanted(event: Mapping[str, Any], options: argparse.Namespace) -> bool:
    kind = event.get("type")
    of_type = kind == options.type if options.type else kind not in _SNAPSHOTS
    return of_type and (not options.seat or options.seat in (event.get("agent_handle"), event.get("source")))


def _print_event(event: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(event)
        return
    sys.stdout.write(f"{event['timestamp']}  {event['type']:<24}  {one_line(event.get('summary') or event['type'])}\n")
    sys.stdout.flush()


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object, one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Rows under a header, each column as wide as its widest cell."""
    lines = [tuple(one_line(cell) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]))]
    for row in lines:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")
