"""Reading a message's chain from the log: the whole of it, and nothing of another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.base import limits
from crewlet.node.message_events import chain_events
from crewlet.store import Database, EventLog
from tests.unit.node.chains import WAKE, Chain


async def test_a_chain_longer_than_a_page_is_read_from_its_first_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVENT_PAGE_MAX", 3)
    chain = Chain()
    for _ in range(4):
        chain.ends(chain.begins("ceo", WAKE), redelivered=True)
    async with Database(tmp_path / "node.db") as database:
        log = EventLog(database)
        for event in chain.events:
            await log.record(f"crewlet.events.{event.type}", event)

        read = await chain_events(log, "trace")
        others = await chain_events(log, "another trace")

    assert [event.id for event in read] == [event.id for event in chain.events]
    assert others == []
