"""What limits a seat's tokens, and which windows have no room: the company's document against its counters. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from crewlet.coordination import (
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    Period,
    Refusal,
    Windows,
    agent_scope,
    turns_over_at,
    windows_at,
    without_room,
)
from crewlet.org import Organization, Seat, TokenBudget
from crewlet.turns import RefusedWindow

__all__ = ["SeatBudget", "ceilings_of", "full_windows", "refused_windows", "rooms_in", "seat_budget", "zone_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatBudget:
    """The ceilings that a seat's tokens are held to, and the clock that cuts the windows."""

    agent_id: str
    zone: ZoneInfo
    company: Ceilings
    seat: Ceilings

    @property
    def capped(self) -> tuple[tuple[str, Ceilings], ...]:
        """The scopes that have a ceiling at all, the company first."""
        scopes = ((COMPANY_SCOPE, self.company), (agent_scope(self.agent_id), self.seat))
        return tuple((scope, ceilings) for scope, ceilings in scopes if ceilings != UNCAPPED)

    def windows(self, now: datetime) -> Windows:
        """The windows of this moment."""
        return windows_at(now, self.zone)


def seat_budget(company: Organization, seat: Seat) -> SeatBudget:
    """What limits an agent seat of this company."""
    return SeatBudget(
        agent_id=seat.agent_id or "",
        zone=zone_of(company),
        company=ceilings_of(company.token_budget),
        seat=ceilings_of(seat.token_budget),
    )


def zone_of(company: Organization) -> ZoneInfo:
    """The company's clock."""
    return ZoneInfo(company.timezone)


def ceilings_of(budget: TokenBudget) -> Ceilings:
    """The ceilings as the counters take them."""
    return Ceilings(day=budget.day, week=budget.week, month=budget.month)


def rooms_in(record: BudgetRecord, ceilings: Ceilings) -> list[int]:
    """What each capped window of a counter has left."""
    capped = ((ceilings.of(period), record.slot(period).used) for period in Period)
    return [ceiling - used for ceiling, used in capped if ceiling is not None]


def full_windows(record: BudgetRecord, ceilings: Ceilings, windows: Windows) -> tuple[RefusedWindow, ...]:
    """The capped windows of a counter without room for a single token."""
    return tuple(
        RefusedWindow(
            scope=record.scope,
            period=str(period),
            label=(slot := record.slot(period)).label,
            spent=slot.used,
            ceiling=ceilings.of(period),
            resets_at=_ends_at(period, slot.label, windows),
        )
        for period in without_room(record, ceilings)
    )


def refused_windows(refusals: Iterable[Refusal], windows: Windows) -> tuple[RefusedWindow, ...]:
    """What refused, with the moment at which it will no more."""
    return tuple(
        RefusedWindow(
            scope=each.scope,
            period=each.period,
            label=each.label,
            spent=each.used,
            ceiling=each.ceiling,
            resets_at=_ends_at(Period(each.period), each.label, windows) if each.label else None,
        )
        for each in refusals
    )


def _ends_at(period: Period, label: str, windows: Windows) -> datetime:
    """By the window's own label: its slot may be ahead of the clock that is looked at."""
    return turns_over_at(period, label, windows.zone, after=windows.at)
