"""What the passes of a node act on: its company, the seats it keeps, and whether it may claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crewlet.seats.placement import PlacedCompany
from crewlet.seats.seat_keeping import KeptSeat

__all__ = ["Ledgers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledgers:
    """Each is asked anew whenever it is needed.

    ``kept`` gives a seat's keeping, a new one where there is none. ``withheld`` is why not to claim, or empty.
    """

    company: Callable[[], PlacedCompany]
    all_kept: Callable[[], Sequence[KeptSeat]]
    kept: Callable[[str], KeptSeat]
    withdrawn: Callable[[], bool]
    may_claim: Callable[[], bool]
    withheld: Callable[[], str]
