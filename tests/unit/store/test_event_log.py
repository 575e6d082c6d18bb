"""The log of what this node published: each event once, as it was, found by what is asked about it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crewlet.base import limits
from crewlet.base.trace import fresh_trace
from crewlet.events import CATEGORIES, NOT_STORED, Body, Category, Event, decode, encode, new_event
from crewlet.events.types import (
    A2aMessageSent,
    AgentPhaseStarted,
    AgentTurnCompleted,
    ExternalNotification,
    NotificationSkipped,
    OrgStarted,
    OrgStopped,
    TaskAssigned,
)
from crewlet.store import Connection, Database, EventCursor, EventFilter, EventLog, StoredEvent
from crewlet.store.event_filter import page_sql
from crewlet.testing import SeededIds
from tests.unit.events.samples import BODIES, full_event

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDS = SeededIds(3)
TOPIC = "crewlet.events.any"
_MICROSECOND = timedelta(microseconds=1)


def event_of(body: Body, at: datetime = NOON, trace_id: str = "") -> Event:
    made = new_event(body, trace=fresh_trace(IDS), now=at, ids=IDS)
    return replace(made, trace_id=trace_id) if trace_id else made


async def record_all(log: EventLog, events: Sequence[Event]) -> None:
    await asyncio.gather(*(log.record(TOPIC, event) for event in events))


def ids_of(found: Sequence[StoredEvent]) -> list[str]:
    return [each.event.id for each in found]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.event_type)
async def test_an_event_comes_out_as_it_went_in(log: EventLog, body: Body) -> None:
    event = full_event(body)

    await log.record("crewlet.events.somewhere", event)
    stored = await log.event(event.id)

    assert stored == StoredEvent("crewlet.events.somewhere", event)


async def test_what_a_successor_said_comes_out_too(log: EventLog) -> None:
    raw = encode(event_of(OrgStarted(company="Acme")))[:-1] + b',"future":{"deep":[1,2.5,null]}}'

    await log.record(TOPIC, decode(raw))
    [stored] = await log.events(EventFilter())

    assert stored.event.extra == {"future": {"deep": [1, 2.5, None]}}


async def test_a_repeated_id_is_stored_once_and_changes_nothing(log: EventLog) -> None:
    event = event_of(OrgStarted(company="Acme"))
    other = replace(event, data=OrgStarted(company="Other"), timestamp=NOON + timedelta(hours=1))

    answers = [await log.record(TOPIC, event), await log.record(TOPIC, other), await log.record("elsewhere", event)]

    assert answers == [True, False, False]
    assert await log.events(EventFilter()) == [StoredEvent(TOPIC, event)]


async def test_an_unknown_id_is_none(log: EventLog) -> None:
    assert await log.event("nowhere") is None


@pytest.mark.spec("E-118", "E-122", "E-141")
async def test_the_listener_stores_the_types_that_are_rows_and_no_others(log: EventLog) -> None:
    listen = log.listener()
    unknown = replace(event_of(OrgStarted(company="Acme")), type="from_a_successor", data=None)

    for number, body in enumerate(BODIES):
        await listen(TOPIC, replace(full_event(body), id=f"{number}"))
    await listen(TOPIC, unknown)
    stored = {each.event.type for each in await log.events(EventFilter(limit=limits.EVENT_PAGE_MAX))}

    assert stored == {body.event_type for body in BODIES} - NOT_STORED.keys()
    live = {"a2a_request", "a2a_message", "raw_webhook", "agent_turn_progress", "budget_meters"}
    assert live <= NOT_STORED.keys()


async def test_the_row_says_which_node_the_event_came_from(log: EventLog, database: Database) -> None:
    await log.record(TOPIC, event_of(OrgStarted(company="Acme")).stamped("node-4"))

    assert await database.read(lambda connection: connection.execute("SELECT node FROM crewlet_events").get) == "node-4"


async def test_the_facts_that_are_asked_for_stand_in_columns(log: EventLog, database: Database) -> None:
    event = replace(
        event_of(AgentTurnCompleted(turn_id="t", agent_handle="ceo", role="Chief", input_tokens=5, failed=True)),
        extra={
            "actor_seat": "ada",
            "tool": "seat_pause",
            "dir": "/backup",
            "work_item": {"backend": "jira", "id": "POC-7"},
            "output_tokens": 2**70,
            "channel_id": 7,
        },
    )

    def columns(connection: Connection) -> object:
        names = (
            "agent_handle, agent_role, actor, failed, turn_id, input_tokens, actor_seat, work_item, tags, channel_id"
        )
        return connection.execute(f"SELECT {names}, summary FROM crewlet_events").get

    await log.record(TOPIC, event)

    assert await database.read(columns) == (
        "ceo",
        "Chief",
        "Chief",
        1,
        "t",
        5,
        "ada",
        "jira:POC-7",
        '{"actor_seat":"ada","tool":"seat_pause","dir":"/backup"}',
        None,
        "ceo ended a turn (failed: )",
    )


async def test_a_page_is_newest_first_to_the_microsecond(log: EventLog) -> None:
    events = [event_of(OrgStarted(company="Acme"), NOON + number * _MICROSECOND) for number in range(5)]
    await record_all(log, [events[2], events[0], events[4], events[1], events[3]])

    found = await log.events(EventFilter(limit=3))

    assert ids_of(found) == [events[4].id, events[3].id, events[2].id]


@pytest.mark.parametrize("limit", [1, 3, 7, 40])
@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(),
        EventFilter(seat="ceo"),
        EventFilter(types=("org_started", "task_assigned", "nothing")),
        EventFilter(category=Category.TASK),
        EventFilter(category=Category.A2A, seat="cto"),
    ],
    ids=["all", "seat", "types", "category", "category_of_seat"],
)
async def test_a_walk_through_the_pages_visits_every_row_once(log: EventLog, limit: int, wanted: EventFilter) -> None:
    chance = random.Random(5)
    bodies: list[Body] = [
        OrgStarted(company="Acme"),
        TaskAssigned(agent_handle="ceo", task="a"),
        TaskAssigned(agent_handle="cto", task="b"),
        A2aMessageSent(channel_id="c", sender="ceo", recipient="cto", content="?"),
    ]
    instants = [NOON + chance.randrange(8) * _MICROSECOND for _ in range(40)]
    await record_all(log, [event_of(bodies[number % 4], at) for number, at in enumerate(instants)])
    whole = await log.events(replace(wanted, limit=limits.EVENT_PAGE_MAX))

    walked: list[StoredEvent] = []
    while page := await log.events(replace(wanted, limit=limit, before=walked[-1].cursor if walked else None)):
        walked += page

    assert len(whole) >= 10
    assert ids_of(walked) == ids_of(whole)
    assert [each.cursor for each in whole] == sorted((each.cursor for each in whole), reverse=True)


async def test_each_filter_keeps_what_it_says(log: EventLog) -> None:
    started = event_of(OrgStarted(company="Acme"), NOON, trace_id="1" * 32)
    phase = event_of(AgentPhaseStarted(turn_id="t1", agent_handle="ceo", phase="execute"), NOON + _MICROSECOND)
    failed = event_of(AgentTurnCompleted(turn_id="t1", agent_handle="ceo", failed=True), NOON + 2 * _MICROSECOND)
    ended = event_of(AgentTurnCompleted(turn_id="t2", agent_handle="cto"), NOON + 3 * _MICROSECOND)
    await record_all(log, [started, phase, failed, ended])

    async def found(**asked: object) -> list[str]:
        return ids_of(await log.events(EventFilter(**asked)))  # pyright: ignore[reportArgumentType]

    assert await found(types=("org_started",)) == [started.id]
    assert await found(types=("org_started", "agent_phase_started")) == [phase.id, started.id]
    assert await found(category=Category.LIFECYCLE) == [started.id]
    assert await found(category=Category.LIFECYCLE, types=("agent_phase_started",)) == []
    assert await found(seat="ceo") == [failed.id, phase.id]
    assert await found(seat="ceo", failed=False) == [phase.id]
    assert await found(trace_id="1" * 32) == [started.id]
    assert await found(turn_id="t1") == [failed.id, phase.id]
    assert await found(turn_id="t1", types=("agent_turn_completed",)) == [failed.id]
    assert await found(failed=True) == [failed.id]
    assert await found(failed=False) == [ended.id, phase.id, started.id]
    assert await found(since=NOON + _MICROSECOND, until=NOON + 3 * _MICROSECOND) == [failed.id, phase.id]
    assert await found(before=EventCursor(failed.timestamp, failed.id)) == [phase.id, started.id]


def test_a_page_has_a_bound() -> None:
    with pytest.raises(ValueError, match="limit"):
        EventFilter(limit=0)
    with pytest.raises(ValueError, match="limit"):
        EventFilter(limit=limits.EVENT_PAGE_MAX + 1)
    with pytest.raises(ValueError, match="types"):
        EventFilter(types=("x",) * (limits.EVENT_FILTER_TYPES_MAX + 1))


@pytest.mark.spec("E-112")
@pytest.mark.parametrize("category", Category)
async def test_every_category_finds_its_own_types(log: EventLog, category: Category) -> None:
    filed = [body for body in BODIES if CATEGORIES.get(body.event_type) is category]
    await record_all(log, [event_of(body) for body in BODIES])

    found = await log.events(EventFilter(category=category))

    assert {each.event.type for each in found} == {body.event_type for body in filed}


async def test_both_sides_of_an_ask_are_its_parties_and_a_stranger_of_the_same_name_is_not(log: EventLog) -> None:
    asked = event_of(A2aMessageSent(channel_id="c", sender="ceo", recipient="cto", content="?"))
    stranger = event_of(ExternalNotification(integration="mail", agent_handle="cfo", sender="ceo"))
    dropped = event_of(NotificationSkipped(integration="mail", reason="nobody", sender="ceo", recipient="cto"))
    await record_all(log, [asked, stranger, dropped])

    found = {seat: ids_of(await log.events(EventFilter(seat=seat))) for seat in ("ceo", "cto", "cfo")}

    assert found == {"ceo": [asked.id], "cto": [asked.id], "cfo": [stranger.id]}


async def test_a_page_of_large_events_is_cut_and_goes_on(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EVENT_PAGE_MAX_BYTES", 25_000)
    events = [
        event_of(TaskAssigned(agent_handle="ceo", task="x" * 10_000), NOON + number * _MICROSECOND)
        for number in range(5)
    ]
    await record_all(log, events)

    first = await log.events(EventFilter())
    second = await log.events(EventFilter(before=first[-1].cursor))

    assert ids_of([*first, *second]) == [event.id for event in reversed(events)][:4]
    assert len(first) == 2


async def test_an_event_larger_than_a_page_is_a_page_of_its_own(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EVENT_PAGE_MAX_BYTES", 1000)
    events = [event_of(TaskAssigned(agent_handle="ceo", task="x" * 10_000)) for _ in range(2)]
    await record_all(log, events)

    assert len(await log.events(EventFilter())) == 1


async def test_a_turn_is_told_oldest_first(log: EventLog) -> None:
    events = [
        event_of(AgentPhaseStarted(turn_id="t1", agent_handle="ceo", phase=f"{number}"), NOON + number * _MICROSECOND)
        for number in range(4)
    ]
    await record_all(log, [*reversed(events), event_of(AgentPhaseStarted(turn_id="t2", phase="other"))])

    history = await log.turn("t1")

    assert ids_of(history.events) == [event.id for event in events]
    assert not history.truncated
    assert (await log.turn("t3")).events == ()


async def test_a_trace_is_told_oldest_first_up_to_its_bound(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EVENT_HISTORY_MAX", 5)
    events = [
        event_of(OrgStarted(company="Acme"), NOON + number * _MICROSECOND, trace_id="a" * 32) for number in range(6)
    ]
    await record_all(log, events[:5])
    whole = await log.trace("a" * 32)
    await log.record(TOPIC, events[5])

    cut = await log.trace("a" * 32)

    assert ids_of(whole.events) == ids_of(cut.events) == [event.id for event in events[:5]]
    assert (whole.truncated, cut.truncated) == (False, True)


async def test_a_sweep_deletes_what_is_old_in_bounded_steps_and_leaves_no_trace_of_it(
    log: EventLog, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVENT_PRUNE_MAX", 4)
    old = [event_of(TaskAssigned(agent_handle=f"seat-{number % 3}", task="a")) for number in range(10)]
    recent = event_of(TaskAssigned(agent_handle="seat-0", task="b"), NOON + _MICROSECOND)
    await record_all(log, [*old, recent])

    steps = [await log.prune(NOON + _MICROSECOND) for _ in range(4)]
    parties = await database.read(
        lambda connection: connection.execute("SELECT * FROM crewlet_event_parties").fetchall()
    )

    assert steps == [4, 4, 2, 0]
    assert ids_of(await log.events(EventFilter())) == [recent.id]
    assert [row[:1] for row in parties] == [("seat-0",)]
    assert ids_of(await log.events(EventFilter(seat="seat-0"))) == [recent.id]
    assert await log.events(EventFilter(seat="seat-1")) == []


async def test_concurrent_events_are_all_there(log: EventLog) -> None:
    events = [event_of(OrgStopped(company="Acme"), NOON + number * _MICROSECOND) for number in range(300)]

    await asyncio.gather(*(log.record(TOPIC, event) for event in events))

    found = await log.events(EventFilter(limit=limits.EVENT_PAGE_MAX))
    assert ids_of(found) == [event.id for event in reversed(events)]


async def test_a_listing_is_read_through_an_index(database: Database) -> None:
    """No page walks the whole log: what is asked for most stands in an index with the time beside it."""
    asked = [
        EventFilter(),
        EventFilter(seat="ceo"),
        EventFilter(types=("org_started",)),
        EventFilter(category=Category.SYSTEM),
        EventFilter(trace_id="a"),
        EventFilter(turn_id="a"),
        EventFilter(failed=True),
    ]

    def plans(connection: Connection) -> list[str]:
        steps: list[str] = []
        for wanted in asked:
            query, values = page_sql(replace(wanted, before=EventCursor(NOON, "x")))
            rows = connection.execute(f"EXPLAIN QUERY PLAN {query}", values)
            steps.append("; ".join(row[3] for row in rows))
        return steps

    found = await database.read(plans)

    assert [plan for plan in found if "SCAN crewlet_events" in plan or "SCAN e" in plan or "SCAN p" in plan] == []
    assert ["USE TEMP B-TREE" in plan for plan in found] == [False, False, False, True, False, False, False]
