"""What a turn began with is what whoever goes on with it goes by."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryLog, MemoryLogStream
from crewlet.base.ids import TurnId
from crewlet.inbox import Opening, SeatJournal
from crewlet.inbox.journal_entries import Opened, decode_entry
from crewlet.inbox.journal_state import LastTurn
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.testing import VirtualClock
from tests.unit.turns.turn_kit import trigger_from

pytestmark = pytest.mark.virtual_time

RELEASED = b'{"kind":"opened","at":"2030-01-01T00:00:00Z","turn_id":"t1","prompts":{"execute":"Work."},"owes":"chat"}'
"""As a build wrote it that knew of no onboarding and kept no revision."""


async def journal(log: MemoryLogStream, writer: str) -> SeatJournal:
    async def standing() -> bool:
        return True

    return SeatJournal("ceo", MemoryLog(log), epoch=1, writer=writer, standing=standing, clock=VirtualClock())


async def test_a_successor_is_told_the_place_and_the_revision_that_the_turn_began_with() -> None:
    log = MemoryLogStream(VirtualClock())
    first = await journal(log, "w1")
    await first.take_over()
    began = Opening(prompts={"execute": "Work."}, revision="r1", owes="chat", onboarding="place-1")
    await JournalledTurn(first, trigger_from(), TurnId("t1")).open(began)
    found = await (second := await journal(log, "w2")).take_over()

    here = Opening(prompts={"execute": "Now.", "review": "Judge."}, revision="r2")
    opened = await JournalledTurn(second, trigger_from(), TurnId("t1"), found.turn).open(here)

    assert opened == Opening(
        prompts={"execute": "Work.", "review": "Judge."}, revision="r1", owes="chat", onboarding="place-1"
    )


async def test_an_older_opening_has_no_onboarding_whatever_is_due_here() -> None:
    entry = decode_entry(RELEASED)
    assert isinstance(entry, Opened)
    taken = JournalledTurn(
        await journal(MemoryLogStream(VirtualClock()), "w"), trigger_from(), TurnId("t1"), LastTurn(entry, 1)
    )

    opened = await taken.open(Opening(prompts={"onboarding": "Look."}, revision="r2", onboarding="place-1"))

    assert (opened.onboarding, opened.revision, opened.owes) == ("", "", "chat")
