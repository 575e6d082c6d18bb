"""The calendar of token budgets: the day, the ISO week and the month of an instant on the company's clock (S0)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

__all__ = ["Period", "Windows", "day_before", "is_label", "turns_over_at", "windows_at"]


class Period(StrEnum):
    """What a ceiling is for."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Windows:
    """The three windows that ``at`` lies in, by their labels. Of two labels of one period the greater is the later."""

    at: datetime
    zone: ZoneInfo
    day: str
    week: str
    month: str

    def __iter__(self) -> Iterator[tuple[Period, str]]:
        """Each period with its label."""
        yield Period.DAY, self.day
        yield Period.WEEK, self.week
        yield Period.MONTH, self.month

    def label(self, period: Period) -> str:
        """The label of one period."""
        return dict(self)[period]

    def turn_over_at(self, period: Period) -> datetime:
        """When the window of ``period`` ends (UTC)."""
        return turns_over_at(period, self.label(period), self.zone, after=self.at)


def windows_at(at: datetime, zone: ZoneInfo) -> Windows:
    """The windows of an instant (with its offset) on a company's clock: ``2026-09-23``, ``2026-W39``, ``2026-09``."""
    return Windows(at, zone, *_labels_of(at.astimezone(zone).date()))


def turns_over_at(period: Period, label: str, zone: ZoneInfo, *, after: datetime | None = None) -> datetime:
    """When the window called ``label`` ends on this clock (UTC); of two such moments the first one ``after``.

    There are two where the clock is set back over midnight: the day before it comes again.
    """
    behind = _first_day_behind(period, label)
    midnight = datetime.combine(behind, time.min, tzinfo=zone)
    if midnight.astimezone(UTC).astimezone(zone).date() != behind:
        # The clock is set forward over a midnight that never is: what follows is the moment of that change.
        return midnight.astimezone(UTC)
    first, second = (midnight.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    return second if after is not None and first <= after else first


@lru_cache(maxsize=256)
def is_label(period: Period, text: str) -> bool:
    """Whether ``text`` is the label of a window of ``period``, as :func:`windows_at` writes it."""
    try:
        last = _first_day_behind(period, text) - timedelta(days=1)
    except (ValueError, OverflowError):
        return False
    day, week, month = _labels_of(last)
    return text == {Period.DAY: day, Period.WEEK: week, Period.MONTH: month}[period]


@lru_cache(maxsize=64)
def day_before(label: str, days: int) -> str:
    """The label of the day that lies ``days`` before the day called ``label``."""
    return (date.fromisoformat(label) - timedelta(days=days)).isoformat()


@lru_cache(maxsize=64)
def _labels_of(day: date) -> tuple[str, str, str]:
    """Day, week and month: looked up with every charge and every record that is read."""
    year, week, _ = day.isocalendar()
    text = day.isoformat()
    return text, f"{year:04d}-W{week:02d}", text[:7]


def _first_day_behind(period: Period, label: str) -> date:
    if period is Period.DAY:
        return date.fromisoformat(label) + timedelta(days=1)
    if period is Period.WEEK:
        year, week = label.split("-W")
        return date.fromisocalendar(int(year), int(week), 1) + timedelta(days=7)
    year, month = map(int, label.split("-"))
    return date(year + month // 12, month % 12 + 1, 1)
