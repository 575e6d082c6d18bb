"""The calendar of budgets: labels at boundaries in several zones, and when each window turns over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.coordination import Period, turns_over_at, windows_at
from crewlet.coordination.records.budget_windows import day_before, is_label

ZONES = (
    "UTC",
    "Europe/Paris",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "America/St_Johns",
    "Asia/Tokyo",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
)
INSTANTS = st.integers(631_152_000, 2_840_140_800).map(lambda second: datetime.fromtimestamp(second, UTC))
"""From 1990 to 2060."""


@pytest.mark.spec("C-167")
@pytest.mark.parametrize(
    ("at", "zone", "labels"),
    [
        ("2026-09-23T12:00:00", "UTC", ("2026-09-23", "2026-W39", "2026-09")),
        ("2026-09-27T23:59:59", "UTC", ("2026-09-27", "2026-W39", "2026-09")),
        ("2026-09-28T00:00:00", "UTC", ("2026-09-28", "2026-W40", "2026-09")),
        ("2026-09-30T15:00:00", "Asia/Tokyo", ("2026-10-01", "2026-W40", "2026-10")),
        ("2026-10-01T06:59:59", "America/Los_Angeles", ("2026-09-30", "2026-W40", "2026-09")),
        ("2025-12-29T00:00:00", "UTC", ("2025-12-29", "2026-W01", "2025-12")),
        ("2027-01-03T22:59:59", "Europe/Paris", ("2027-01-03", "2026-W53", "2027-01")),
        ("2027-01-03T23:00:00", "Europe/Paris", ("2027-01-04", "2027-W01", "2027-01")),
        ("2028-02-29T12:00:00", "UTC", ("2028-02-29", "2028-W09", "2028-02")),
    ],
)
def test_a_window_has_its_label_on_the_companys_clock(at: str, zone: str, labels: tuple[str, str, str]) -> None:
    windows = windows_at(datetime.fromisoformat(at).replace(tzinfo=UTC), ZoneInfo(zone))

    assert (windows.day, windows.week, windows.month) == labels


@pytest.mark.spec("C-167")
@pytest.mark.parametrize(
    ("label", "zone", "turns_over"),
    [
        ("2026-09-23", "UTC", "2026-09-24T00:00:00"),
        ("2026-W39", "UTC", "2026-09-28T00:00:00"),
        ("2026-09", "UTC", "2026-10-01T00:00:00"),
        ("2026-12", "Asia/Tokyo", "2026-12-31T15:00:00"),
        ("2026-W53", "Europe/Paris", "2027-01-03T23:00:00"),
        # The clocks change on the day itself: it has 23 hours, or 25.
        ("2026-03-29", "Europe/Paris", "2026-03-29T22:00:00"),
        ("2026-10-25", "Europe/Paris", "2026-10-25T23:00:00"),
        # There is no midnight: the day begins at one.
        ("2018-11-03", "America/Sao_Paulo", "2018-11-04T03:00:00"),
        # There is no such day: the thirtieth of December was left out.
        ("2011-12-29", "Pacific/Apia", "2011-12-30T10:00:00"),
    ],
)
def test_a_window_turns_over_at_the_companys_midnight(label: str, zone: str, turns_over: str) -> None:
    period = next(period for period in Period if is_label(period, label))

    assert turns_over_at(period, label, ZoneInfo(zone)) == datetime.fromisoformat(turns_over).replace(tzinfo=UTC)


def test_a_day_that_comes_again_turns_over_again() -> None:
    # At one past midnight the clock went back to 23:01 of the day before.
    zone, second_time = ZoneInfo("America/St_Johns"), datetime(2010, 11, 7, 3, 0, tzinfo=UTC)

    windows = windows_at(second_time, zone)

    assert windows.day == "2010-11-06"
    assert turns_over_at(Period.DAY, windows.day, zone) < second_time
    assert windows.turn_over_at(Period.DAY) == datetime(2010, 11, 7, 3, 30, tzinfo=UTC)


def lasts_until_it_turns_over(at: datetime, zone: ZoneInfo, period: Period) -> bool:
    label = windows_at(at, zone).label(period)
    turns_over = windows_at(at, zone).turn_over_at(period)
    before = windows_at(turns_over - timedelta(microseconds=1), zone).label(period)
    return turns_over > at and before <= label < windows_at(turns_over, zone).label(period)


@given(at=INSTANTS, zone=st.sampled_from(ZONES).map(ZoneInfo), period=st.sampled_from(Period))
def test_a_window_lasts_until_it_turns_over_and_a_later_one_begins(
    at: datetime, zone: ZoneInfo, period: Period
) -> None:
    assert lasts_until_it_turns_over(at, zone, period)
    assert is_label(period, windows_at(at, zone).label(period))


@pytest.mark.slow
@pytest.mark.parametrize("zone", [*map(ZoneInfo, ZONES)], ids=ZONES)
def test_a_window_lasts_until_it_turns_over_around_every_change_of_the_clocks(zone: ZoneInfo) -> None:
    changes = [*clock_changes(zone, 1990, 2040)]
    around_s = (-86_400, -3600, -1800, -60, -1, 0, 1, 59, 60, 1800, 3599, 3600, 7200)

    wrong = [
        (change, seconds, period)
        for change in changes
        for seconds in around_s
        for period in Period
        if not lasts_until_it_turns_over(change + timedelta(seconds=seconds), zone, period)
    ]

    assert wrong == []


def clock_changes(zone: ZoneInfo, first_year: int, last_year: int) -> Iterator[datetime]:
    """Each second in which the zone's offset becomes another."""
    day = datetime(first_year, 1, 1, tzinfo=UTC)
    while day.year < last_year:
        last, first = day, day + timedelta(days=1)
        if last.astimezone(zone).utcoffset() != first.astimezone(zone).utcoffset():
            offset = last.astimezone(zone).utcoffset()
            while first - last > timedelta(seconds=1):
                middle = (last + (first - last) / 2).replace(microsecond=0)
                last, first = (middle, first) if middle.astimezone(zone).utcoffset() == offset else (last, middle)
            yield first
        day += timedelta(days=1)


@given(earlier=INSTANTS, apart=st.timedeltas(timedelta(0), timedelta(days=900)), period=st.sampled_from(Period))
def test_of_two_labels_the_later_is_no_less(earlier: datetime, apart: timedelta, period: Period) -> None:
    zone = ZoneInfo("UTC")

    assert windows_at(earlier, zone).label(period) <= windows_at(earlier + apart, zone).label(period)


@pytest.mark.parametrize(
    ("period", "text"),
    [
        (Period.DAY, ""),
        (Period.DAY, "2026-9-23"),
        (Period.DAY, "2026-02-30"),
        (Period.DAY, "2026-W39"),
        (Period.WEEK, "2026-W54"),
        (Period.WEEK, "2026-W9"),
        (Period.MONTH, "2026-13"),
        (Period.MONTH, "2026-09-23"),
        (Period.MONTH, "zzz"),
    ],
)
def test_what_cannot_be_compared_is_no_label(period: Period, text: str) -> None:
    assert not is_label(period, text)


def test_the_day_before_is_counted_over_months() -> None:
    assert day_before("2026-03-03", 8) == "2026-02-23"
