"""Handles and unit keys: well-formed, and unique over the whole company."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crewlet.base.errors import Problem
from crewlet.org.names import HANDLE_GRAMMAR, is_handle
from crewlet.org.walk import Chart

__all__ = ["identity_problems"]


def identity_problems(chart: Chart) -> Iterator[Problem]:
    """Minted identities that are malformed, and identities given twice."""
    seats = [(role.path, "handle", role.handle, bool(role.written.handle)) for role in chart.roles]
    units = [(unit.path, "id", unit.key, bool(unit.written.id)) for unit in chart.units]
    yield from _problems("handle", seats)
    yield from _problems("unit key", units)


def _problems(what: str, identities: Sequence[tuple[str, str, str, bool]]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for path, field, identity, is_written in identities:
        if not is_handle(identity):
            yield Problem(
                f"{path}.name", f"its name makes no valid {what} ({identity!r})", f"add `{field}`: {HANDLE_GRAMMAR}"
            )
        elif identity in first:
            origin = "" if is_written else ", minted from the name,"
            yield Problem(
                f"{path}.{field if is_written else 'name'}",
                f"{what} {identity!r}{origin} is already that of {first[identity]}",
                f"give one of them another `{field}`",
            )
        else:
            first[identity] = path
