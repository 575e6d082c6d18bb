"""``crewlet dlq`` and ``crewlet mailboxes``: what waits where, and what was given up."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, cast

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem
from crewlet.cli.client import ApiClient, ApiRefused, environment, segment
from crewlet.cli.plain_text import one_line, plain
from crewlet.cli.read_commands import print_json, print_table
from crewlet.cli.whereabouts import find_node

__all__ = ["dlq_drop", "dlq_list", "dlq_redrive", "dlq_show", "mailboxes"]

Row = Mapping[str, Any]

_PAGE: Final = limits.DEAD_LETTER_PAGE_MAX
_LOST_CODES: Final = frozenset({"no_such_dead_letter", "mailbox_gone"})
"""Refusals that concern one letter: the others may still be worth a try."""


def mailboxes(options: argparse.Namespace) -> int:
    """Print every mailbox: what waits, what is held, since when, who is attached."""
    return asyncio.run(_mailboxes(options))


def dlq_list(options: argparse.Namespace) -> int:
    """Print the newest letters, the newest of them first."""
    return asyncio.run(_list(options))


def dlq_show(options: argparse.Namespace) -> int:
    """Print one letter with its message."""
    return asyncio.run(_show(options))


def dlq_redrive(options: argparse.Namespace) -> int:
    """Send letters on their way again, the oldest first; 1 where one could not be."""
    return asyncio.run(_each(options, "redrive"))


def dlq_drop(options: argparse.Namespace) -> int:
    """Remove letters for good; 1 where one was not there."""
    return asyncio.run(_each(options, "drop"))


async def _mailboxes(options: argparse.Namespace) -> int:
    async with _api(options) as api:
        answer = await api.get("/mailboxes", {"seat": options.seat})
    if options.json:
        print_json(answer)
        return 0
    if options.seat and not answer["mailboxes"]:
        names = "is the name right? `crewlet seats` shows names"
        sys.stderr.write(f"crewlet: no mailbox of seat {options.seat!r} ({names})\n")
        return 0
    header = ("TOPIC", "GROUP", "PENDING", "HELD", "OLDEST", "ATTACHED")
    print_table([header, *(_mailbox_row(row) for row in cast("list[Row]", answer["mailboxes"]))])
    return 0


def _mailbox_row(row: Row) -> tuple[str, ...]:
    return (row["topic"], row["group"], str(row["pending"]), str(row["held"]), row["oldest"] or "-", row["attached"])


async def _list(options: argparse.Namespace) -> int:
    rows: list[Row] = []
    more = False
    async with _api(options) as api:
        async for row in _letters(api, options, limit=options.limit + 1):
            more = len(rows) == options.limit
            if more:
                break
            rows.append(row)
    if options.json:
        print_json({"letters": rows, "more": more})
        return 0
    if not rows:
        sys.stderr.write("crewlet: no dead letter" + _wanted(options) + "\n")
        return 0
    header = ("ID", "AT", "SEAT", "EVENT", "DELIVERIES", "REASON")
    print_table([header, *(_letter_row(row) for row in rows)])
    if more:
        sys.stderr.write(f"crewlet: there are more; give --limit, or --before {one_line(rows[-1]['id'])}\n")
    return 0


def _letter_row(row: Row) -> tuple[str, ...]:
    where = row["seat"] or row["topic"] or "-"
    return (row["id"], row["at"], where, row["event_type"] or "(no event)", str(row["deliveries"]), row["reason"])


async def _show(options: argparse.Namespace) -> int:
    async with _api(options) as api:
        letter = await api.get(f"/dead-letters/{segment(options.id)}")
    if options.json:
        print_json(letter)
        return 0
    for name, value in letter.items():
        if name != "payload" and value not in ("", None):
            sys.stdout.write(f"{name + ':':<12} {one_line(value)}\n")
    payload = letter["payload"]
    shown = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False, indent=2)
    sys.stdout.write(f"\n{plain(shown)}\n")
    return 0


async def _each(options: argparse.Namespace, verb: str) -> int:
    _check_named(options)
    async with _api(options) as api:
        ids = [str(row["id"]) async for row in _letters(api, options)] if options.all else list(options.ids)
        _check_meant(options, ids, verb)
        # By the places that they were given up at: what came first is worked first.
        done = [await _one(api, each, verb) for each in sorted(dict.fromkeys(ids), key=_order)]
    if not ids:
        sys.stderr.write("crewlet: no dead letter" + _wanted(options) + "\n")
    return 0 if all(done) else 1


def _check_named(options: argparse.Namespace) -> None:
    if options.ids and (options.all or options.seat or options.topic):
        raise ConfigError(Problem("", "ids are given, and what chooses letters too", "give ids alone, or --all"))
    if not (options.ids or options.all):
        raise ConfigError(Problem("", "no letter is named", "give ids, or --all; `crewlet dlq list` shows them"))


def _check_meant(options: argparse.Namespace, ids: list[str], verb: str) -> None:
    """Several at once only when it was said so: a filter may match more than was thought."""
    if len(set(ids)) > 1 and not options.yes:
        raise ConfigError(Problem("", f"this would {verb} {len(set(ids))} letters", "say --yes to do it"))


async def _one(api: ApiClient, letter_id: str, verb: str) -> bool:
    path = f"/dead-letters/{segment(letter_id)}"
    try:
        if verb == "drop":
            await api.delete(path)
            sys.stdout.write(f"{one_line(letter_id)}  dropped\n")
        else:
            sent = await api.post(f"{path}/redrive", {})
            sys.stdout.write(f"{one_line(letter_id)}  redriven to {one_line(sent['topic'])}\n")
    except ApiRefused as refused:
        if refused.code not in _LOST_CODES:
            raise
        sys.stderr.write(f"crewlet: {one_line(refused)}\n")
        return False
    return True


async def _letters(api: ApiClient, options: argparse.Namespace, *, limit: int = _PAGE) -> AsyncIterator[Row]:
    """Every letter that the options mean, newest first, page after page."""
    before: str | None = getattr(options, "before", "")
    while before is not None:
        query = {"seat": options.seat, "topic": options.topic, "limit": str(min(limit, _PAGE)), "before": before}
        page = await api.get("/dead-letters", query)
        for row in cast("list[Row]", page["letters"]):
            yield row
        before = cast("str | None", page["next"])


def _wanted(options: argparse.Namespace) -> str:
    if options.seat:
        return f" of seat {options.seat!r}"
    return f" of topic {options.topic!r}" if options.topic else ""


def _order(letter_id: str) -> tuple[int, str]:
    return (int(letter_id) if letter_id.isdecimal() else 0, letter_id)


def _api(options: argparse.Namespace) -> ApiClient:
    return ApiClient(find_node(options.url, options.config, environment()))
