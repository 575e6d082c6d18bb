"""A node's own event log is kept to its horizon by the node itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.duties import event_retention
from crewlet.events import Event
from crewlet.store import Database, EventFilter, EventLog

NOW = datetime(2030, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Fixed:
    """A clock that stands."""

    at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def elapsed_s(self) -> float:
        return 0.0


async def written(log: EventLog, event_id: str, at: datetime) -> None:
    await log.record(topics.event_topic("org_started"), Event(id=event_id, type="org_started", timestamp=at))


async def test_what_is_older_than_thirty_days_goes_and_nothing_else(tmp_path: Path) -> None:
    async with Database(tmp_path / "node.db") as database:
        log = EventLog(database)
        for days in (31, 30.001, 29.999, 1):
            await written(log, f"before-{days}", NOW - days * DAY)

        await event_retention(log, Fixed()).work()

        left = [each.event.id for each in await log.events(EventFilter())]

    assert sorted(left) == ["before-1", "before-29.999"]


async def test_many_old_rows_go_in_one_tick_a_bounded_number_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVENT_PRUNE_MAX", 3)
    monkeypatch.setattr(limits, "EVENT_PRUNES_A_TICK_MAX", 4)
    monkeypatch.setattr(limits, "EVENT_PRUNE_PAUSE_S", 0.0)
    async with Database(tmp_path / "node.db") as database:
        log = EventLog(database)
        for number in range(15):
            await written(log, f"old-{number:02}", NOW - 40 * DAY + timedelta(seconds=number))

        await event_retention(log, Fixed()).work()
        after_one = len(await log.events(EventFilter()))
        await event_retention(log, Fixed()).work()

        assert after_one == 3
        assert await log.events(EventFilter()) == []


async def test_a_database_that_does_not_serve_is_told(tmp_path: Path) -> None:
    database = Database(tmp_path / "node.db")
    await database.open()
    await database.close()

    with pytest.raises(Unavailable):
        await event_retention(EventLog(database), Fixed()).work()
