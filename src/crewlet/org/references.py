"""What the document's references mean: leads, and who manages whom. What means nothing is reported, never fatal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crewlet.base.errors import Problem
from crewlet.base.ids import Handle
from crewlet.org.walk import Chart, PlacedRole, PlacedUnit

__all__ = ["Relations", "relations_of"]


@dataclass(frozen=True, slots=True)
class Relations:
    """Effective leads by unit, whom each seat manages, and the references that name nothing."""

    leads: Mapping[PlacedUnit, Handle]
    manages: Mapping[Handle, tuple[Handle, ...]]
    dangling: tuple[Problem, ...]


def relations_of(chart: Chart) -> Relations:
    """Resolve every reference of a chart whose handles and keys are unique."""
    seats = _seat_tokens(chart.roles)
    units = _unit_tokens(chart.units)
    dangling: list[Problem] = []
    leads = _leads(chart, seats, dangling)
    manages = {role.handle: _explicit(chart, role, seats, units, dangling) for role in chart.roles}
    for unit, lead in leads.items():
        manages[lead] = (*manages[lead], *_led(chart, unit, lead, manages))
    return Relations(leads, manages, tuple(dangling))


def _seat_tokens(roles: Iterable[PlacedRole]) -> Mapping[str, PlacedRole]:
    """Handles first, then the names that only one seat has."""
    roles = tuple(roles)
    count = Counter(role.written.name for role in roles)
    by_name = {role.written.name: role for role in roles if count[role.written.name] == 1}
    return {**by_name, **{role.handle: role for role in roles}}


def _unit_tokens(units: Iterable[PlacedUnit]) -> Mapping[str, PlacedUnit]:
    """Keys first, then the names that only one unit has."""
    units = tuple(units)
    count = Counter(unit.written.name for unit in units)
    by_name = {unit.written.name: unit for unit in units if count[unit.written.name] == 1}
    return {**by_name, **{unit.key: unit for unit in units}}


def _leads(chart: Chart, seats: Mapping[str, PlacedRole], dangling: list[Problem]) -> dict[PlacedUnit, Handle]:
    """The lead of each unit: its own, or that of the nearest unit around it that has one."""
    leads: dict[PlacedUnit, Handle] = {}
    for unit in chart.units:  # A unit comes before the units inside it, so the one around it is settled.
        token = unit.written.lead
        if token and token not in seats:
            dangling.append(_names_nothing(f"{unit.path}.lead", token, "seat"))
        if token in seats:
            leads[unit] = seats[token].handle
        elif unit.above and unit.above[0] in leads:
            leads[unit] = leads[unit.above[0]]
    return leads


def _explicit(
    chart: Chart,
    role: PlacedRole,
    seats: Mapping[str, PlacedRole],
    units: Mapping[str, PlacedUnit],
    dangling: list[Problem],
) -> tuple[Handle, ...]:
    """The seats that a seat's ``manages`` lists, in its order and once each; a seat wins over a unit."""
    found: dict[Handle, None] = {}
    for index, token in enumerate(role.written.manages):
        path = f"{role.path}.manages[{index}]"
        if token in seats:
            listed: tuple[PlacedRole, ...] = (seats[token],)
            if seats[token] is role:
                dangling.append(Problem(path, "a seat does not manage itself", "remove this entry"))
        elif token in units:
            listed = chart.subtree[units[token]]
        else:
            dangling.append(_names_nothing(path, token, "seat and no unit"))
            continue
        found.update((other.handle, None) for other in listed if other is not role)
    return tuple(found)


def _led(
    chart: Chart, unit: PlacedUnit, lead: Handle, manages: Mapping[Handle, tuple[Handle, ...]]
) -> tuple[Handle, ...]:
    """The direct members that fall to the lead: those whom no direct member manages, and who do not manage the lead."""
    members = [role.handle for role in chart.members[unit]]
    managed = {report for member in members for report in manages[member]} | set(manages[lead])
    return tuple(
        member for member in members if member != lead and member not in managed and lead not in manages[member]
    )


def _names_nothing(path: str, token: str, what: str) -> Problem:
    return Problem(
        path, f"{token!r} names no {what}, or more than one", "use a handle or a unit key; the entry has no effect"
    )
