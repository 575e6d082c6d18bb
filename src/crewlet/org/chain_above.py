"""Where a seat stands in its company: the units that it is in and who manages it, from the top down. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from crewlet.base.ids import Handle
from crewlet.org.names import UnitKey
from crewlet.org.organization import Organization
from crewlet.org.seats import Seat

__all__ = ["chain_hash", "managers_above", "units_around"]

_HASH_CHARS: Final = 16


def units_around(company: Organization, seat: Seat) -> tuple[UnitKey, ...]:
    """The keys of the units that the seat is in, the outermost first; empty for a root seat."""
    found: list[UnitKey] = []
    unit = None if seat.unit is None else company.unit(seat.unit)
    while unit is not None:
        found.append(unit.key)
        unit = None if unit.parent is None else company.unit(unit.parent)
    return tuple(reversed(found))


def managers_above(company: Organization, seat: Seat) -> tuple[Handle, ...]:
    """The handles of its manager, and of that one's, and so on, the topmost first; of a circle each once."""
    found: dict[Handle, None] = {}
    above = company.manager(seat.handle)
    while above is not None and above.handle != seat.handle and above.handle not in found:
        found[above.handle] = None
        above = company.manager(above.handle)
    return tuple(reversed(found))


def chain_hash(company: Organization, seat: Seat) -> str:
    """A name for all that stands above the seat: another as soon as a unit or a manager there is another.

    It goes by keys and handles alone: whoever is only called differently has not moved.
    """
    above = [units_around(company, seat), managers_above(company, seat)]
    return hashlib.sha256(json.dumps(above).encode()).hexdigest()[:_HASH_CHARS]
