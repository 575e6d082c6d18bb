"""The one table of slots: what the fleet shares, how long each record lives, and why that long (S0).

What follows from an age (which buckets need their markers swept, which claims are too long) is derived from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CHANNELS", "LEDGER", "SLOTS", "Slot"]

_DAY_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Slot:
    """One bucket. ``age_s`` is counted from a record's last write; ``None`` keeps it until somebody removes it."""

    name: str
    age_s: float | None
    why: str


LEDGER: Final = Slot("ledger", 7 * _DAY_S, "outlasts every redelivery and every fire that could still be caught up")
CHANNELS: Final = Slot("channels", None, "no clock can tell an ask that still waits from one that is over")

SLOTS: Final = (LEDGER, CHANNELS)
