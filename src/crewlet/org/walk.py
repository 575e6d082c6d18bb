"""The document's seats and units in walk order, each with its path, its minted identity and where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crewlet.base.ids import Handle
from crewlet.org.document import CompanyDocument
from crewlet.org.document_role import RoleDocument
from crewlet.org.document_unit import UnitDocument
from crewlet.org.names import UnitKey, mint

__all__ = ["Chart", "PlacedRole", "PlacedUnit", "chart_of"]


@dataclass(frozen=True, slots=True, eq=False)
class PlacedUnit:
    """A unit as written, under its key; equal to itself alone. ``above`` is the units around it, the nearest first."""

    written: UnitDocument
    key: UnitKey
    path: str
    above: tuple[PlacedUnit, ...]

    @property
    def line_of_units(self) -> tuple[PlacedUnit, ...]:
        """Itself, then the units around it, the nearest first."""
        return (self, *self.above)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRole:
    """A seat as written, under its handle; equal to itself alone. ``unit`` is ``None`` at the root."""

    written: RoleDocument
    handle: Handle
    path: str
    unit: PlacedUnit | None

    @property
    def is_agent(self) -> bool:
        """Whether the engine runs it."""
        return self.written.kind == "agent"


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """All seats and units: root seats first, then each unit's own seats before those of the units inside it.

    ``members`` are the seats written directly in a unit, ``subtree`` those of the units inside it as well.
    """

    roles: tuple[PlacedRole, ...]
    units: tuple[PlacedUnit, ...]
    members: Mapping[PlacedUnit, tuple[PlacedRole, ...]]
    subtree: Mapping[PlacedUnit, tuple[PlacedRole, ...]]


def chart_of(document: CompanyDocument) -> Chart:
    """Lay the document out. Identities are minted here and may still clash or be malformed."""
    units = tuple(_units(document.units, "units", ()))
    members = {unit: tuple(_roles(unit.written.roles, f"{unit.path}.roles", unit)) for unit in units}
    subtree: dict[PlacedUnit, list[PlacedRole]] = {unit: [] for unit in units}
    for unit in units:
        for around in unit.line_of_units:
            subtree[around].extend(members[unit])
    roots = _roles(document.roles, "roles", None)
    roles = (*roots, *(role for unit in units for role in members[unit]))
    return Chart(roles, units, members, {unit: tuple(found) for unit, found in subtree.items()})


def _units(written: tuple[UnitDocument, ...], path: str, above: tuple[PlacedUnit, ...]) -> Iterator[PlacedUnit]:
    for index, unit in enumerate(written):
        here = f"{path}[{index}]"
        placed = PlacedUnit(unit, UnitKey(unit.id or mint(unit.name)), here, above)
        yield placed
        yield from _units(unit.children, f"{here}.children", placed.line_of_units)


def _roles(written: tuple[RoleDocument, ...], path: str, unit: PlacedUnit | None) -> Iterator[PlacedRole]:
    for index, role in enumerate(written):
        yield PlacedRole(role, Handle(role.handle or mint(role.name)), f"{path}[{index}]", unit)
