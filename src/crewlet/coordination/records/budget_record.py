"""One scope's token counter as it stands, and every change that can be made to it (S0). Pure: it reads no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.budget_windows import Period, Windows, day_before, is_label
from crewlet.coordination.records.codec import SharedRecord

__all__ = [
    "AGENT_KEYS",
    "COMPANY_SCOPE",
    "UNCAPPED",
    "BudgetRecord",
    "Ceilings",
    "Lane",
    "WindowSlot",
    "agent_scope",
    "as_found",
    "counted",
    "landed",
    "laneless",
    "refused",
    "scope_key",
    "without_lanes",
    "without_room",
]

_PERIODS: Final = (*Period,)
COMPANY_SCOPE: Final = "org"
_AGENT: Final = "agent"
AGENT_KEYS: Final = f"{_AGENT}.*"
"""The keys of every seat's record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """How many tokens a scope may spend in each window, ``None`` for no ceiling: configuration, which is not shared."""

    day: int | None = None
    week: int | None = None
    month: int | None = None

    def of(self, period: Period) -> int | None:
        """The ceiling of one period."""
        ceiling: int | None = getattr(self, period)
        return ceiling


UNCAPPED: Final = Ceilings()


class WindowSlot(SharedRecord, frozen=True, kw_only=True):
    """What was spent in the window called ``label`` (empty: none yet), and when a call was last turned away in it."""

    label: str = ""
    used: int = 0
    refused_at: datetime | None = None


class Lane(msgspec.Struct, array_like=True, frozen=True):
    """How far one lane has charged: its last number, the periods that refused that charge, when (UTC, in seconds).

    An array, which must not grow: what a later build has to add goes beside the lanes. It may know other periods.
    """

    number: int
    refused: tuple[str, ...]
    charged_at: str


class BudgetRecord(SharedRecord, frozen=True, kw_only=True):
    """The counter of one scope: a slot for each period, and the lanes that charged it, which no roll touches."""

    scope: str
    day: WindowSlot = WindowSlot()
    week: WindowSlot = WindowSlot()
    month: WindowSlot = WindowSlot()
    lanes: dict[str, Lane] = {}

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a label that could not be compared with ours."""
        super().__post_init__()
        for period in _PERIODS:
            label = self.slot(period).label
            if label and not is_label(period, label):
                raise ValueError(f"{self.scope}: {label!r} names no {period}")

    def slot(self, period: Period) -> WindowSlot:
        """The slot of one period."""
        slot: WindowSlot = getattr(self, period)
        return slot


def agent_scope(agent_id: str) -> str:
    """The scope of one agent seat."""
    return f"{_AGENT}:{agent_id}"


def scope_key(scope: str) -> str:
    """The key of a scope's record: ``org``, or ``agent.`` and a token for the agent's id."""
    kind, _, name = scope.partition(":")
    return f"{kind}.{key_token(name)}" if name else kind


def laneless(value: bytes) -> bytes:
    """A stored record without its lanes, which are most of it where many turns charge; as it is where it is none."""
    try:
        parts = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return value
    parts.pop("lanes", None)
    return msgspec.json.encode(parts)


def as_found(record: BudgetRecord, windows: Windows) -> BudgetRecord:
    """The record as a charge in these windows finds it: slots of earlier windows moved on, spend and refusal cleared.

    A slot that stands in a later window stays there: no clock that trails brings an allowance back.
    """
    moved = {
        period.value: replace(record.slot(period), label=label, used=0, refused_at=None)
        for period, label in windows
        if record.slot(period).label < label
    }
    return replace(record, **moved) if moved else record


def without_room(record: BudgetRecord, ceilings: Ceilings, tokens: int = 1) -> tuple[Period, ...]:
    """The capped windows in which ``tokens`` more would be too many; a single one is asked for at least."""
    asked = max(tokens, 1)
    full: list[Period] = []
    for period in _PERIODS:
        ceiling = ceilings.of(period)
        if ceiling is not None and record.slot(period).used + asked > ceiling:
            full.append(period)
    return tuple(full)


def landed(record: BudgetRecord, lane: str, number: int) -> tuple[str, ...] | None:
    """What refused the charge ``number`` of ``lane``, if it is counted here already; ``None`` where it is not.

    Of a lane that has gone on since, what refused its last one: nobody waits for the earlier ones any more.
    """
    found = record.lanes.get(lane)
    return None if found is None or found.number < number else found.refused


def counted(
    record: BudgetRecord, windows: Windows, tokens: int, *, lane: str, number: int, ceilings: Ceilings | None
) -> BudgetRecord:
    """The record with a charge in it, in every window, capped or not, refused or not. Its lane says what refused it.

    Without ``ceilings`` nothing is judged: the marks of earlier refusals stay as they are.
    """
    found = as_found(record, windows)
    full = () if ceilings is None else without_room(found, ceilings, tokens)
    slots: dict[str, WindowSlot] = {}
    for period in _PERIODS:
        slot = found.slot(period)
        refused_at = slot.refused_at if full or ceilings is None else None
        if period in full:
            refused_at = _later(refused_at, windows.at)
        slots[period] = replace(slot, used=slot.used + tokens, refused_at=refused_at)
    # They grow old with the day, so whoever moved it on has taken what was too old.
    lanes = dict(found.lanes) if found is record and len(found.lanes) < limits.BUDGET_LANES_MAX else _kept_lanes(found)
    lanes[lane] = Lane(number, full, f"{windows.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")
    return replace(found, **slots, lanes=lanes)


def refused(record: BudgetRecord, windows: Windows, ceilings: Ceilings) -> BudgetRecord:
    """The record with every capped window marked that has no room for a single token; itself where none is marked."""
    found = as_found(record, windows)
    marked: dict[str, WindowSlot] = {}
    for period in without_room(found, ceilings):
        slot = found.slot(period)
        marked[period.value] = replace(slot, refused_at=_later(slot.refused_at, windows.at))
    return replace(record, **marked)


def without_lanes(record: BudgetRecord, is_over: Callable[[str], bool]) -> BudgetRecord:
    """The record without the lanes that are over; itself where there are none of them."""
    kept = {name: lane for name, lane in record.lanes.items() if not is_over(name)}
    return record if len(kept) == len(record.lanes) else replace(record, lanes=kept)


def _kept_lanes(record: BudgetRecord) -> dict[str, Lane]:
    """The lanes that are not too old, nor too many."""
    oldest = day_before(record.day.label, limits.BUDGET_LANE_AGE_DAYS)
    kept = {name: lane for name, lane in record.lanes.items() if lane.charged_at >= oldest}
    if len(kept) < limits.BUDGET_LANES_MAX:
        return kept
    newest_first = sorted(kept.items(), key=lambda each: each[1].charged_at, reverse=True)
    return dict(newest_first[: limits.BUDGET_LANES_MAX - 1])


def _later(before: datetime | None, at: datetime) -> datetime:
    return at if before is None else max(before, at)
