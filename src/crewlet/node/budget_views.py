"""The token budgets as people and programs see them: every scope, every window, and how it stands. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from crewlet.coordination import (
    COMPANY_SCOPE,
    BudgetRecord,
    Ceilings,
    Period,
    Windows,
    agent_scope,
    turns_over_at,
    windows_at,
)
from crewlet.node.seat_budget import ceilings_of, zone_of
from crewlet.org import Organization

__all__ = [
    "NEAR",
    "OK",
    "REFUSING",
    "UNKNOWN",
    "BudgetScopeView",
    "BudgetWindowView",
    "BudgetsView",
    "budgets_view",
    "window_state",
]

OK: Final = "ok"
NEAR: Final = "near"
REFUSING: Final = "refusing"
UNKNOWN: Final = "unknown"
_NEAR_PERCENT: Final = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWindowView:
    """One window. ``max`` is ``None`` without a ceiling; ``used`` is ``None`` where the counter could not be read.

    ``state`` is ``ok``, ``near`` (nine tenths are spent), ``refusing`` (no room for a token) or ``unknown``.
    """

    period: str
    label: str
    used: int | None
    max: int | None
    state: str
    refused_at: datetime | None
    resets_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetScopeView:
    """One counter: ``org``, or ``agent:{id}`` of the seat ``handle``; its day, its week and its month."""

    scope: str
    handle: str
    windows: tuple[BudgetWindowView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetsView:
    """Every budget, the company's first. ``durable``: false where the counters could not be read."""

    durable: bool
    timezone: str
    scopes: tuple[BudgetScopeView, ...]


def window_state(used: int, ceiling: int | None) -> str:
    """How a window stands, by its figures alone."""
    if ceiling is None:
        return OK
    if used >= ceiling:
        return REFUSING
    return NEAR if used * 100 >= ceiling * _NEAR_PERCENT else OK


def budgets_view(company: Organization, records: Mapping[str, BudgetRecord] | None, now: datetime) -> BudgetsView:
    """The company's budgets against its counters, as a charge of ``now`` would find them.

    A scope without a record has spent nothing yet; without ``records`` nothing is known of what was spent.
    """
    windows = windows_at(now, zone_of(company))
    scopes = [(COMPANY_SCOPE, "", ceilings_of(company.token_budget))]
    scopes += [
        (agent_scope(seat.agent_id or ""), seat.handle, ceilings_of(seat.token_budget)) for seat in company.agent_seats
    ]
    return BudgetsView(
        durable=records is not None,
        timezone=company.timezone,
        scopes=tuple(
            BudgetScopeView(scope=scope, handle=handle, windows=_windows(scope, ceilings, records, windows))
            for scope, handle, ceilings in scopes
        ),
    )


def _windows(
    scope: str, ceilings: Ceilings, records: Mapping[str, BudgetRecord] | None, windows: Windows
) -> tuple[BudgetWindowView, ...]:
    record = None if records is None else records.get(scope)
    if record is not None:
        return tuple(_counted(record, period, ceilings, windows) for period in Period)
    used, state = (None, UNKNOWN) if records is None else (0, OK)
    return tuple(
        BudgetWindowView(
            period=str(period),
            label=label,
            used=used,
            max=ceilings.of(period),
            state=state,
            refused_at=None,
            resets_at=windows.turn_over_at(period),
        )
        for period, label in windows
    )


def _counted(record: BudgetRecord, period: Period, ceilings: Ceilings, windows: Windows) -> BudgetWindowView:
    slot, ceiling = record.slot(period), ceilings.of(period)
    return BudgetWindowView(
        period=str(period),
        label=slot.label,
        used=slot.used,
        max=ceiling,
        state=window_state(slot.used, ceiling),
        refused_at=slot.refused_at,
        resets_at=turns_over_at(period, slot.label, windows.zone, after=windows.at),
    )
