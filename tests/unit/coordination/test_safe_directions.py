"""Each contract says what it does with an unreachable store; no direction is anybody's by default."""

from __future__ import annotations

import inspect
import re

import pytest

from crewlet import coordination
from crewlet.coordination import records

CLOSED = r"\bfails closed\b"
OPEN = r"\bfails open\b"
UNKNOWN = r"raises? ``Unavailable``"
ANY = f"{CLOSED}|{OPEN}|{UNKNOWN}"

DIRECTIONS: dict[str, str] = {
    "ConfigPointers": UNKNOWN,
    "Cooldowns": UNKNOWN,
    "Custodies": UNKNOWN,
    "DeliveryClaims": OPEN,
    "Fires": CLOSED,
    "Follows": OPEN,
    "Ledger": OPEN,
    "NodeStatuses": UNKNOWN,
    "RateValve": CLOSED,
    "Rebases": CLOSED,
}
"""What these contracts must say. Another has to say one of the three."""


def contracts() -> dict[str, type[object]]:
    """Every public class of the records that is made over a record store."""
    public = {name: getattr(records, name) for name in records.__all__}
    return {
        name: kind
        for name, kind in public.items()
        if inspect.isclass(kind) and "RecordStore" in str(inspect.signature(kind.__init__))
    }


@pytest.mark.spec("C-005")
def test_every_contract_says_its_direction() -> None:
    silent = {
        name
        for name, kind in contracts().items()
        if not re.search(DIRECTIONS.get(name, ANY), " ".join((kind.__doc__ or "").split()), re.IGNORECASE)
    }

    assert silent == set()
    assert DIRECTIONS.keys() <= contracts().keys()


def test_every_contract_is_part_of_the_rooms_face() -> None:
    assert contracts().keys() <= set(coordination.__all__)
