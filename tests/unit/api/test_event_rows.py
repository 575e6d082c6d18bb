from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.api.event_rows import (
    MalformedCursor,
    cursor_text,
    event_row,
    flat_event,
    parse_cursor,
    record,
    stored_row,
)
from crewlet.events import body_types, encode
from crewlet.events.types import AgentTurnProgress, AgentTurnStarted
from crewlet.store import Database, EventCursor, EventFilter, EventLog
from tests.unit.api.small_node import Chronicle

_ROW = set(event_row("t", Chronicle().event(AgentTurnStarted(turn_id="t"))))
_SAME_IN_BOTH = {"turn_id", "work_key", "agent_handle", "failed"}


@given(st.datetimes(timezones=st.just(UTC)), st.text(min_size=1))
def test_a_cursor_comes_back_as_it_was(timestamp: datetime, event_id: str) -> None:
    try:
        event_id.encode()
    except UnicodeEncodeError:
        return
    cursor = EventCursor(timestamp, event_id)

    assert parse_cursor(cursor_text(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["x", "!!!!", "bm90IGEgY3Vyc29y", "MjAyNi0wMS0wMQ", "ÿ", "MjAyNi0wMS0wMVQwMDowMDowMCBp"]
)
def test_a_text_that_no_page_gave_is_refused(text: str) -> None:
    with pytest.raises(MalformedCursor):
        parse_cursor(text)


def test_a_payload_is_the_event_as_it_was_published() -> None:
    stored = Chronicle().row(AgentTurnStarted(turn_id="t-1", agent_handle="ceo"))

    assert msgspec.json.decode(msgspec.json.encode(record(stored)))["payload"] == msgspec.json.decode(
        encode(stored.event)
    )


@pytest.mark.spec("E-115")
async def test_a_listing_without_payloads_shows_who_acted_with_which_tool_and_where(tmp_path: Path) -> None:
    said = {"actor_seat": "ada", "tool": "seat_pause", "dir": "/backups/1"}
    started = Chronicle().event(AgentTurnStarted(turn_id="t"))
    acted = replace(started, type="operator_acted", data=None, node="north", extra=said)
    async with Database(tmp_path / "crewlet.db") as database:
        log = EventLog(database)
        await log.record("crewlet.events.operator_acted", acted)
        (stored,) = await log.events(EventFilter())

    row = stored_row(stored)

    assert (row["node"], row["tags"]) == ("north", said)
    assert "payload" not in row


def test_a_streamed_event_carries_row_and_body_flat_and_uncut() -> None:
    text = "long " * 100_000
    event = Chronicle().event(AgentTurnProgress(turn_id="t-1", agent_handle="ceo", partial_text=text))

    flat = flat_event("crewlet.events.x", event)

    assert (flat["partial_text"], flat["agent_handle"], flat["topic"]) == (text, "ceo", "crewlet.events.x")
    assert set(flat) >= _ROW


def test_what_this_build_does_not_know_is_streamed_too() -> None:
    event = replace(Chronicle().event(AgentTurnStarted(turn_id="t")), type="of_a_successor", data=None, extra={"a": 1})

    assert flat_event("t", event)["a"] == 1


@pytest.mark.parametrize("name", sorted(body_types()))
def test_no_known_body_hides_a_fact_of_the_row(name: str) -> None:
    fields = set(body_types()[name].__struct_fields__)

    assert fields & _ROW <= _SAME_IN_BOTH
