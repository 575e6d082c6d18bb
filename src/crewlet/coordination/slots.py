"""The one table of slots: what the fleet shares, how long each record lives, and why that long (S0).

What follows from an age (which buckets need their markers swept, which claims are too long) is derived from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from crewlet.base import limits

__all__ = [
    "BUDGETS",
    "CHANNELS",
    "CLAIMS",
    "CONFIG",
    "COOLDOWNS",
    "CUSTODY",
    "DUTIES",
    "EPOCHS",
    "FIRES",
    "FOLLOWS",
    "INTEGRATIONS",
    "LEASES",
    "LEDGER",
    "MAILBOXES",
    "OBJECTS",
    "POSITIONS",
    "RATE",
    "REBASES",
    "SANDBOX_RUNS",
    "SECRETS",
    "SLOTS",
    "STATUS",
    "Slot",
    "leases_slot",
    "swept_slots",
]

_MINUTE_S: Final = 60.0
_HOUR_S: Final = 60 * _MINUTE_S
_DAY_S: Final = 24 * _HOUR_S


@dataclass(frozen=True, slots=True)
class Slot:
    """One bucket. ``age_s`` is counted from a record's last write; ``None`` keeps it until somebody removes it.

    ``classes`` are the first tokens of its keys; none named: the class is a name from outside (a seat, a provider).
    ``grows``: an age found lower than ours is raised to ours when it is opened; no age is ever lowered.
    ``dated``: somebody goes by the time of a write of its own. Else the broker is not asked for it, and the writer is
    told the earliest that it can have been; who reads the record later has its time as ever.
    ``removes``: records are removed one by one, so that markers stay behind. ``sealed``: no screen shows its values.
    """

    name: str
    age_s: float | None
    why: str
    classes: tuple[str, ...] = ()
    grows: bool = False
    removes: bool = True
    sealed: bool = False
    dated: bool = True


LEASES: Final = Slot(
    "leases",
    limits.LEASE_TTL_S,
    "a node that stops renewing stops holding, with nobody there to notice",
    ("seat", "node"),
)
DUTIES: Final = Slot(
    "duties",
    limits.MAX_DUTY_TTL_S,
    "outlives the longest duty; each tenure ends at the deadline that its record carries",
    ("worker", "move", "merge", "bulk"),
    grows=True,
)
EPOCHS: Final = Slot(
    "epochs", None, "a fence that starts again is none", (*LEASES.classes, *DUTIES.classes), removes=False
)
CONFIG: Final = Slot("config", None, "its revision is the fence of the configuration", ("company",))
STATUS: Final = Slot("status", limits.STATUS_AGE_S, "a node that stops reporting leaves the fleet's view", ("node",))
LEDGER: Final = Slot(
    "ledger", 7 * _DAY_S, "outlasts every redelivery and every fire that could still be caught up", dated=False
)
CLAIMS: Final = Slot("claims", limits.DELIVERY_CLAIM_MAX_S, "outlives the longest delivery claim", ("delivery",))
RATE: Final = Slot("rate", limits.RATE_AGE_S, "a closed window must go, never after the one behind it", ("seat",))
COOLDOWNS: Final = Slot("cooldowns", _DAY_S, "outlives the longest cooldown that anything sets", ("credential",))
BUDGETS: Final = Slot("budgets", 32 * _DAY_S, "outlives the longest window, a month", ("org", "agent"), dated=False)
CHANNELS: Final = Slot(
    "channels", None, "no clock can tell an ask that still waits from one that is over", ("channel",)
)
FIRES: Final = Slot("fires", 7 * _DAY_S, "a claim that went too early would let a fire be caught up twice", ("fire",))
REBASES: Final = Slot("rebases", 30 * _DAY_S, "as long as an attempt could still inherit the instant", ("work",))
SANDBOX_RUNS: Final = Slot("sandbox_runs", None, "its record alone knows that a billed box exists", ("run",))
SECRETS: Final = Slot(
    "secrets", None, "a credential that expired would be an outage on a timer", ("secret",), sealed=True
)
INTEGRATIONS: Final = Slot("integrations", None, "what the last pass found is true until the next", ("surface",))
MAILBOXES: Final = Slot("mailboxes", None, "no clock can tell a seat that left from one that is quiet", ("seat",))
FOLLOWS: Final = Slot("follows", 90 * _DAY_S, "a thread nobody touched for so long is over")
CUSTODY: Final = Slot("custody", 32 * _DAY_S, "outlives every event that a crashed writer could ask about", ("batch",))
OBJECTS: Final = Slot("objects", None, "files in two stores would be files lost", ("backend", "collector"))
POSITIONS: Final = Slot(
    "positions",
    None,
    "a position that expired would read as a node that needs nothing",
    ("position", "pin", "backup", "floor", "capacity", "admission", "restart", "seat_pause", "onboarding"),
)

SLOTS: Final = (
    LEASES,
    DUTIES,
    EPOCHS,
    CONFIG,
    STATUS,
    LEDGER,
    CLAIMS,
    RATE,
    COOLDOWNS,
    BUDGETS,
    CHANNELS,
    FIRES,
    REBASES,
    SANDBOX_RUNS,
    SECRETS,
    INTEGRATIONS,
    MAILBOXES,
    FOLLOWS,
    CUSTODY,
    OBJECTS,
    POSITIONS,
)


def leases_slot(ttl_s: float) -> Slot:
    """The slot of seats and presence where the lease TTL is ``ttl_s``: its age is the TTL (C-119)."""
    return replace(LEASES, age_s=ttl_s)


def swept_slots() -> tuple[Slot, ...]:
    """The slots whose removal markers nothing but a sweep takes away (C-149)."""
    return tuple(slot for slot in SLOTS if slot.age_s is None and slot.removes)
