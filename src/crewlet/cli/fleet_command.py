"""``crewlet fleet``: nodes, who runs which seat, duties, and what nobody can run."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from crewlet.cli.client import ApiClient, environment
from crewlet.cli.plain_text import one_line
from crewlet.cli.read_commands import print_json, print_table
from crewlet.cli.whereabouts import find_node

__all__ = ["fleet"]

Row = Mapping[str, Any]


def fleet(options: argparse.Namespace) -> int:
    """Print the fleet."""
    return asyncio.run(_fleet(options))


async def _fleet(options: argparse.Namespace) -> int:
    async with ApiClient(find_node(options.url, options.config, environment())) as api:
        answer = await api.get("/query/fleet")
    if options.json:
        print_json(answer)
        return 0
    header = ("NODE", "SEATS", "IN FLIGHT", "ROLES", "LABELS", "STATE", "VERSION", "COMPANY", "LEASE ENDS IN")
    print_table([header, *(_node_row(row, answer["this_node"]) for row in _rows(answer, "nodes"))])
    sys.stdout.write("\n")
    print_table([("SEAT", "NODE", "EPOCH", "SINCE", "PAUSED"), *(_seat_row(row) for row in _rows(answer, "seats"))])
    if duties := _rows(answer, "duties"):
        sys.stdout.write("\n")
        print_table([("DUTY", "NODE", "LEASE ENDS IN"), *(_duty_row(row) for row in duties)])
    _warn(answer)
    return 0


def _node_row(row: Row, this_node: str) -> tuple[str, ...]:
    name = f"{row['id']} (asked)" if row["id"] == this_node else row["id"]
    labels = " ".join(f"{key}={value}" for key, value in row["labels"].items()) or "-"
    state = "withdrawn" if row["seats_withdrawn"] else "draining" if row["draining"] else row["posture"] or "?"
    state += f", member {row['member']}" if row["member"] not in (None, "healthy") else ""
    in_flight = "?" if row["in_flight"] is None else str(row["in_flight"])
    version = row["version"] or "?"
    company = "?" if row["config_epoch"] is None else str(row["config_epoch"])
    roles, ends_in = ",".join(row["roles"]), _s(row["expires_in_s"])
    return (name, str(row["seats"]), in_flight, roles, labels, state, version, company, ends_in)


def _seat_row(row: Row) -> tuple[str, ...]:
    paused = "-" if row["paused"] is None else f"by {row['paused']['by']}"
    if row["node"] is None:
        return (row["handle"], "(nobody)", "-", "-", paused)
    return (row["handle"], row["node"], str(row["epoch"]), row["acquired_at"], paused)


def _duty_row(row: Row) -> tuple[str, ...]:
    return (row["duty"], f"{row['node']} (gone)" if row["gone"] else row["node"], _s(row["expires_in_s"]))


def _warn(answer: Row) -> None:
    for node in _rows(answer, "nodes"):
        if node["member"] not in (None, "healthy"):
            error = one_line(node["member_error"] or "")
            sys.stderr.write(f"crewlet: {node['id']}: its broker, as a member, is {node['member']}: {error}\n")
        if node["config_error"]:
            sys.stderr.write(f"crewlet: {node['id']}: {one_line(node['config_error'])}\n")
    for seat in _rows(answer, "unplaceable"):
        wanted = [f"node {seat['node']}"] if seat["node"] else []
        wanted += [f"{key}={value}" for key, value in seat["labels"].items()]
        sys.stderr.write(
            f"crewlet: no live node may run {seat['handle']}: it asks for {', '.join(wanted) or 'a node'}\n"
        )
    live = {node["id"] for node in _rows(answer, "nodes")}
    for duty in _rows(answer, "duties"):
        if duty["gone"]:
            # Its claim is the dead process's: one that was started since under the same name waits for its end too.
            who = f"an earlier process of {duty['node']}" if duty["node"] in live else duty["node"]
            next_in = f"is gone: a live node takes it in {_s(duty['expires_in_s'])}"
            sys.stderr.write(f"crewlet: {who} had the duty {duty['duty']} and {next_in}\n")
    if answer["unmanned_roles"]:
        sys.stderr.write(f"crewlet: no live node has the role {', '.join(answer['unmanned_roles'])}\n")


def _rows(answer: Row, name: str) -> Sequence[Row]:
    return cast("Sequence[Row]", answer[name])


def _s(seconds: float) -> str:
    return f"{seconds:g} s"
