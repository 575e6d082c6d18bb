"""A conversation's history: its turns' events, filed under it and found by it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from crewlet.base.trace import fresh_trace
from crewlet.events import Body, new_event
from crewlet.events.types import (
    AgentPhaseCompleted,
    AgentTurnCompleted,
    AgentTurnStarted,
    NotificationsCoalesced,
)
from crewlet.inbox import trigger_of
from crewlet.store import Connection, Database, EventCursor, EventFilter, EventLog, StoredEvent
from crewlet.store.event_filter import page_sql
from crewlet.testing import SeededIds
from tests.unit.inbox.wakes import SOURCES, said

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDS = SeededIds(5)


def told_in(turn_id: str, conversation: str) -> Iterator[Body]:
    """What a turn tells; of all that, only its start and its end name the conversation."""
    yield AgentTurnStarted(turn_id=turn_id, agent_handle="ceo", conversation_key=conversation)
    yield AgentPhaseCompleted(turn_id=turn_id, agent_handle="ceo", phase="execute")
    yield AgentTurnCompleted(turn_id=turn_id, agent_handle="ceo", conversation_key=conversation)


async def record(log: EventLog, *bodies: Body, at: datetime = NOON) -> None:
    for number, body in enumerate(bodies):
        made = new_event(body, trace=fresh_trace(IDS), now=at + timedelta(seconds=number), ids=IDS)
        await log.record("crewlet.events.any", made)


def turns_in(found: list[StoredEvent]) -> list[tuple[str, str]]:
    return [(stored.event.type, getattr(stored.event.data, "turn_id", "")) for stored in found]


@pytest.mark.spec("E-072")
async def test_a_direct_conversations_first_turn_and_a_later_one_in_a_thread_of_it_are_found_together(
    log: EventLog,
) -> None:
    """Whoever asks what was done there gets both, and nothing of a turn elsewhere."""
    for number, wake in enumerate(
        [
            await said("Hi", "m1", channel="D1", ts="5.1"),
            await said("And?", "m2", channel="D1", ts="5.2", thread="5.1"),
            await said("Hi all", "m3", channel="C9", ts="6.1"),
        ]
    ):
        trigger = trigger_of("ceo", [wake], SOURCES, headroom=5)
        await record(log, *told_in(f"t{number}", trigger.conversation_key), at=NOON + timedelta(hours=number))

    found = await log.events(EventFilter(conversation="chat:D1"))

    assert turns_in(found) == [
        ("agent_turn_completed", "t1"),
        ("agent_phase_completed", "t1"),
        ("agent_turn_started", "t1"),
        ("agent_turn_completed", "t0"),
        ("agent_phase_completed", "t0"),
        ("agent_turn_started", "t0"),
    ]


@pytest.mark.spec("E-072")
async def test_every_row_of_a_turn_is_tagged_with_its_conversation(log: EventLog) -> None:
    await record(log, *told_in("t1", "chat:D1"), *told_in("t2", ""))

    rows = {turn: [stored.tags for stored in await log.events(EventFilter(turn_id=turn))] for turn in ("t1", "t2")}

    assert rows == {"t1": [{"conversation_key": "chat:D1"}] * 3, "t2": [{}] * 3}


async def test_a_merged_batch_is_tagged_with_its_partition_alone(log: EventLog) -> None:
    """What a seat did on a thread is not what its wakes arrived in (E-105)."""
    merged = NotificationsCoalesced(
        agent_handle="ceo", integration="chat", partition_key="chat:D1:5.1", work_key="w", trigger_ids=("a", "b")
    )
    await record(log, *told_in("t1", "chat:D1"), merged)

    [row] = await log.events(EventFilter(types=("notifications_coalesced",)))

    assert row.tags == {"integration": "chat", "partition_key": "chat:D1:5.1"}
    assert row not in await log.events(EventFilter(conversation="chat:D1"))


async def test_a_conversation_is_narrowed_like_any_other_page(log: EventLog) -> None:
    await record(log, *told_in("t1", "chat:D1"))
    await record(log, *told_in("t2", "chat:D1"), at=NOON + timedelta(hours=1))
    of_both = EventFilter(conversation="chat:D1", types=("agent_turn_started",), seat="ceo")

    pages = [
        turns_in(await log.events(wanted))
        for wanted in (
            of_both,
            EventFilter(conversation="chat:D1", types=("agent_turn_started",), limit=1),
            EventFilter(conversation="chat:D1", types=("agent_turn_started",), since=NOON + timedelta(minutes=1)),
            EventFilter(conversation="chat:D1", seat="cto"),
        )
    ]

    start = "agent_turn_started"
    assert pages == [[(start, "t2"), (start, "t1")], [(start, "t2")], [(start, "t2")], []]


async def test_a_conversation_is_found_by_indices_alone(database: Database) -> None:
    def plans(connection: Connection) -> list[str]:
        steps: list[str] = []
        for seat in ("", "ceo"):
            query, values = page_sql(EventFilter(conversation="chat:D1", seat=seat, before=EventCursor(NOON, "x")))
            steps.append("; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)))
        return steps

    found = await database.read(plans)

    assert all("crewlet_events_conversation (conversation_key=?)" in plan for plan in found), found
    assert [plan for plan in found if "SCAN crewlet_events" in plan or "SCAN e" in plan or "SCAN p" in plan] == []
