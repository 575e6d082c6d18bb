"""``crewlet coordination``: what the company has agreed on, as a running node reads it from the store."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from crewlet.cli.client import ApiClient, environment, segment
from crewlet.cli.plain_text import one_line, plain
from crewlet.cli.read_commands import print_json, print_table
from crewlet.cli.whereabouts import find_node

__all__ = ["coordination_get", "coordination_ls"]

Row = Mapping[str, Any]

_SHOWN_CHARS: Final = 100
_DAY_S: Final = 24 * 3600.0


def coordination_ls(options: argparse.Namespace) -> int:
    """Print the slots, or the records of one."""
    return asyncio.run(_ls(options))


def coordination_get(options: argparse.Namespace) -> int:
    """Print one record."""
    return asyncio.run(_get(options))


async def _ls(options: argparse.Namespace) -> int:
    async with _api(options) as api:
        if not options.slot:
            return _print_slots(await api.get("/coordination"), as_json=options.json)
        query = {"class": options.key_class, "after": options.after, "limit": str(options.limit)}
        page = await api.get(f"/coordination/{segment(options.slot)}", query)
    if page["note"]:
        sys.stderr.write(f"crewlet: {one_line(page['note'])}\n")
    if options.json:
        print_json(page)
        return 0
    records = cast("Sequence[Row]", page["records"])
    if not records:
        sys.stderr.write(f"crewlet: no record in {options.slot}{_of_class(options)}\n")
        return 0
    print_table([("KEY", "REVISION", "WRITTEN", "VALUE"), *(_row(record) for record in records)])
    if page["next"] is not None:
        sys.stderr.write(f"crewlet: there are more; give --limit, or --after {one_line(page['next'])}\n")
    return 0


async def _get(options: argparse.Namespace) -> int:
    async with _api(options) as api:
        record = await api.get(f"/coordination/{segment(options.slot)}/{segment(options.key)}")
    if options.json:
        print_json(record)
        return 0
    for name in ("key", "revision", "written_at", "size_bytes"):
        sys.stdout.write(f"{name + ':':<12} {one_line(str(record[name]))}\n")
    sys.stdout.write(f"\n{plain(_whole(record))}\n")
    return 0


def _print_slots(answer: Row, *, as_json: bool) -> int:
    if as_json:
        print_json(answer)
        return 0
    rows = [
        (slot["name"], _age(slot["age_s"]), ", ".join(slot["classes"]) or "-", slot["note"] or slot["why"])
        for slot in cast("Sequence[Row]", answer["slots"])
    ]
    print_table([("SLOT", "AGE", "CLASSES", "WHY"), *rows])
    return 0


def _row(record: Row) -> tuple[str, ...]:
    shown = _sealed(record) if record["sealed"] else _text(record["value"])
    cut = shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"
    return (record["key"], str(record["revision"]), record["written_at"], cut)


def _whole(record: Row) -> str:
    value = record["value"]
    if record["sealed"]:
        return _sealed(record)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sealed(record: Row) -> str:
    return f"(sealed, {record['size_bytes']} bytes)"


def _age(age_s: float | None) -> str:
    if age_s is None:
        return "kept"
    for unit, length_s in (("d", _DAY_S), ("h", 3600.0), ("min", 60.0)):
        if age_s >= length_s and age_s % length_s == 0:
            return f"{age_s / length_s:g} {unit}"
    return f"{age_s:g} s"


def _of_class(options: argparse.Namespace) -> str:
    return f" under {options.key_class!r}" if options.key_class else ""


def _api(options: argparse.Namespace) -> ApiClient:
    return ApiClient(find_node(options.url, options.config, environment()))
