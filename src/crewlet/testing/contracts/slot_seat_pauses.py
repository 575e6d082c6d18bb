"""Promises about paused seats: a pause stands until somebody lifts it, and only a change is one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import ClassVar

import pytest
from msgspec.structs import replace

from crewlet.base.errors import Unavailable
from crewlet.coordination import POSITIONS, PauseChange, Paused, SeatPause, SeatPauses
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import AT, add_fields, damage, fields, has_no_answer
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["PAUSE", "SeatPausePromises"]

PAUSE = SeatPause(handle="cto", by="ada", at=AT, by_seat="ceo", reason="too chatty")
STOP = SeatPause(handle="cto", by="bob", at=AT + timedelta(hours=1), reason="at once", stop_running=True)


class SeatPausePromises(Contract):
    """What is true of one seat's pause."""

    kind: ClassVar[type[SeatPauses]] = SeatPauses

    @pytest.mark.spec("C-090")
    async def test_every_node_reads_who_paused_a_seat_and_why(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(POSITIONS)), self.kind(await records.client(POSITIONS))
        stop = replace(STOP, handle="coo")
        assert await here.pause(PAUSE) == Paused(PAUSE, PauseChange.PAUSED)
        assert await here.pause(stop) == Paused(stop, PauseChange.PAUSED)
        await records.disturb()

        assert await there.get("cto") == PAUSE
        assert await there.get("ceo") is None
        assert await there.every() == [stop, PAUSE]

    @pytest.mark.spec("C-090")
    async def test_no_clock_lifts_a_pause(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        pauses = self.kind(store)
        await pauses.pause(PAUSE)
        await records.advance(records.quiet_s)

        assert store.age_s is None
        assert await pauses.get("cto") == PAUSE

    async def test_a_second_pause_changes_nothing(self, records: RecordHarness) -> None:
        pauses = self.kind(await records.client(POSITIONS))
        await pauses.pause(PAUSE)

        again = await pauses.pause(replace(PAUSE, by="bob", reason="me too"))

        assert again == Paused(PAUSE, PauseChange.NONE)

    async def test_a_pause_comes_to_stop_what_runs_once_and_stays_its_first_askers(
        self, records: RecordHarness
    ) -> None:
        pauses = self.kind(await records.client(POSITIONS))
        await pauses.pause(PAUSE)
        stopping = replace(PAUSE, stop_running=True)

        assert await pauses.pause(STOP) == Paused(stopping, PauseChange.STOPS_RUNNING_TOO)
        assert await pauses.pause(STOP) == Paused(stopping, PauseChange.NONE)
        assert await pauses.pause(replace(PAUSE, reason="again")) == Paused(stopping, PauseChange.NONE)
        assert await pauses.get("cto") == stopping

    async def test_of_many_pauses_at_once_one_changed_something(self, records: RecordHarness) -> None:
        clients = [self.kind(await records.client(POSITIONS)) for _ in range(3)]
        await records.disturb()

        asked = await asyncio.gather(
            *(each.pause(replace(PAUSE, by=f"p{number}")) for number, each in enumerate(clients))
        )

        assert sorted(each.change.name for each in asked) == ["NONE", "NONE", "PAUSED"]
        assert len({each.pause.by for each in asked}) == 1

    async def test_who_paused_and_never_heard_of_it_is_told_that_it_did(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        pauses = self.kind(store)
        records.cut_after_write(store)
        await goes_unheard(pauses.pause(PAUSE))
        await records.mend(store)

        assert await pauses.pause(PAUSE) == Paused(PAUSE, PauseChange.PAUSED)

    async def test_who_lifts_a_pause_is_told_which_it_was(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(POSITIONS)), self.kind(await records.client(POSITIONS))
        await here.pause(PAUSE)

        lifted = await asyncio.gather(here.lift("cto"), there.lift("cto"))

        assert [each for each in lifted if each not in (PAUSE, None)] == []
        assert PAUSE in lifted
        assert await here.lift("cto") is None
        assert await here.get("cto") is None
        assert await here.every() == []

    async def test_a_seat_that_was_resumed_can_be_paused_again(self, records: RecordHarness) -> None:
        pauses = self.kind(await records.client(POSITIONS))
        await pauses.pause(PAUSE)
        await pauses.lift("cto")

        assert await pauses.pause(STOP) == Paused(STOP, PauseChange.PAUSED)
        assert await pauses.lift("coo") is None

    async def test_what_a_newer_build_wrote_stays(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        pauses = self.kind(store)
        await pauses.pause(PAUSE)
        await add_fields(store, "seat_pause.cto", until="noon")

        amended = await pauses.pause(STOP)

        assert amended.change is PauseChange.STOPS_RUNNING_TOO
        assert (await fields(store, "seat_pause.cto"))["until"] == "noon"

    async def test_a_pause_that_cannot_be_read_is_not_lifted(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        pauses = self.kind(store)
        await pauses.pause(PAUSE)

        await has_no_answer(
            records,
            store,
            lambda: pauses.pause(PAUSE),
            lambda: pauses.lift("cto"),
            lambda: pauses.get("cto"),
            pauses.every,
        )
        await damage(store, "seat_pause.cto")

        for call in (pauses.get("cto"), pauses.every(), pauses.lift("cto"), pauses.pause(PAUSE)):
            with pytest.raises(Unavailable):
                await call
