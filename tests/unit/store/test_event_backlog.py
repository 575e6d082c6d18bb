"""A database that takes no rows for a while: what happens meanwhile is owed, and written when it does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from crewlet.base import limits
from crewlet.base.trace import Trace
from crewlet.events import Event, new_event
from crewlet.events.types import AgentSpawned, OrgStarted
from crewlet.store import Connection, Database, EventFilter, EventLog
from crewlet.testing import SeededIds, wait_until

TOPIC = "crewlet.events.org_started"
_FILLING = "x" * 200_000


def event(number: int, *, size: int = 0) -> Event:
    body = OrgStarted(company="x" * size or "Acme")
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return new_event(body, trace=Trace("t", "s"), now=now, ids=SeededIds(number), event_id=f"e{number}")


@asynccontextmanager
async def full_disk(database: Database) -> AsyncGenerator[None]:
    """Inside, the file may not grow: SQLite says that the disk is full."""

    def bound(connection: Connection, pages: int) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()

    await database.write(lambda connection: bound(connection, 1))
    yield
    await database.write(lambda connection: bound(connection, 1_000_000))


async def ids(log: EventLog) -> set[str]:
    return {row.event.id for row in await log.events(EventFilter(limit=100))}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EVENT_BACKLOG_RETRY_S", 0.01)


async def test_what_a_full_disk_refused_is_written_once_there_is_room(database: Database, log: EventLog) -> None:
    listener = log.listener()

    async with full_disk(database):
        for number in range(5):
            await listener(TOPIC, event(number, size=len(_FILLING)))
        trouble = log.trouble

    await wait_until(lambda: not log.trouble, what="the end of the trouble")
    assert "behind by 5 events" in trouble
    assert "full" in trouble
    assert await ids(log) == {f"e{number}" for number in range(5)}
    await log.close()


async def test_a_type_that_is_no_row_is_owed_no_row(database: Database, log: EventLog) -> None:
    body = AgentSpawned(agent_handle="ceo", agent_id="a", role="CEO")
    spawned = new_event(body, trace=Trace("t", "s"), now=datetime(2030, 1, 1, tzinfo=UTC), ids=SeededIds(1))

    async with full_disk(database):
        await log.listener()("crewlet.events.agent_spawned", spawned)
        trouble = log.trouble

    assert trouble == ""


@pytest.mark.parametrize("bound", ["EVENT_BACKLOG_MAX", "EVENT_BACKLOG_MAX_BYTES"])
async def test_what_is_owed_is_bounded_and_what_was_lost_is_said(
    database: Database, log: EventLog, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(limits, "EVENT_BACKLOG_RETRY_S", 3600.0)
    monkeypatch.setattr(limits, bound, 2 if bound == "EVENT_BACKLOG_MAX" else 2 * len(_FILLING) + 10_000)
    listener = log.listener()

    async with full_disk(database):
        for number in range(5):
            await listener(TOPIC, event(number, size=len(_FILLING)))
        trouble = log.trouble
    await log.close()

    assert "behind by 2 events, 3 more are lost" in trouble
    assert await ids(log) == {"e3", "e4"}


async def test_what_is_owed_at_the_end_is_tried_once_more(
    database: Database, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVENT_BACKLOG_RETRY_S", 3600.0)
    async with full_disk(database):
        await log.listener()(TOPIC, event(1, size=len(_FILLING)))

    await log.close()

    assert await ids(log) == {"e1"}


async def test_a_log_that_is_closed_owes_nothing_more(database: Database, log: EventLog) -> None:
    await log.close()

    async with full_disk(database):
        await log.listener()(TOPIC, event(1, size=len(_FILLING)))

    assert log.trouble == ""
