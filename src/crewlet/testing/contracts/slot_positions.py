"""Promises about positions: eight classes that never meet in one listing, and floors that never go down."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import ClassVar

import pytest
from msgspec.structs import replace

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import (
    POSITIONS,
    Admission,
    BackupCoverage,
    CapacityOperation,
    LogPosition,
    NodePosition,
    Pin,
    Positions,
    PublishedFloor,
    RestartAcknowledgement,
    Revision,
    SeatPause,
    SeatPauses,
)
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import AT, add_fields, damage, fields, has_no_answer

__all__ = ["PositionPromises"]

ROW = NodePosition(domain="tracker", node="node-0", generation=2, sequence=120, applied_through=118, reported_at=AT)
PIN = Pin(domain="tracker", holder="node-0", why="backup", generation=2, sequence=90, taken_at=AT, renewed_at=AT)
BACKUP = BackupCoverage(domain="tracker", owner="engine", generation=2, sequence=80, taken_at=AT)
FLOOR = PublishedFloor(
    domain="tracker", generation=2, floor=70, term="backup_floor", published_by="node-0", published_at=AT
)
OPERATION = CapacityOperation(domain="tracker", operation_id="o1", phase="sealing", begun_by="ada", begun_at=AT)
ADMISSION = Admission(node="node-0", incarnation="node-0:a", admitted_at=AT)
RESTART = RestartAcknowledgement(node="node-0", operation_id="o1", incarnation="node-0:a", restarted_at=AT)
PAUSE = SeatPause(handle="node-0", by="ada", at=AT)


class PositionPromises(Contract):
    """What is true of the bucket that says what the state log may delete."""

    kind: ClassVar[type[Positions]] = Positions

    @pytest.mark.spec("C-088", "C-089", "C-091")
    async def test_each_of_the_eight_classes_is_listed_by_itself(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        positions, pauses = self.kind(store), SeatPauses(store)
        await positions.report(ROW)
        await positions.pins.put(PIN)
        await positions.backups.put(BACKUP)
        await positions.publish_floor(FLOOR)
        await positions.begin_capacity(OPERATION)
        await positions.admissions.put(ADMISSION)
        await positions.restarts.put(RESTART)
        await pauses.pause(PAUSE)
        await records.disturb()

        assert await positions.nodes("tracker") == [ROW]
        assert [each.record for each in await positions.pins.every()] == [PIN]
        assert [each.record for each in await positions.backups.every("tracker")] == [BACKUP]
        assert await positions.floors() == [FLOOR]
        assert (capacity := await positions.capacity("tracker")) is not None
        assert capacity.record == OPERATION
        assert [each.record for each in await positions.admissions.every()] == [ADMISSION]
        assert [each.record for each in await positions.restarts.every()] == [RESTART]
        assert await pauses.every() == [PAUSE]

    async def test_the_rows_of_one_domain_are_listed_without_anothers(self, records: RecordHarness) -> None:
        positions = self.kind(await records.client(POSITIONS))
        await positions.report(ROW)
        await positions.report(replace(ROW, node="node.1"))
        await positions.report(replace(ROW, domain="tracker.eu"))

        assert {row.node for row in await positions.nodes("tracker")} == {"node-0", "node.1"}
        assert await positions.nodes("pages") == []

    @pytest.mark.spec("C-143")
    async def test_no_clock_takes_a_nodes_row_and_no_verb_does(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        positions = self.kind(store)
        await positions.report(ROW)
        await records.advance(records.quiet_s)

        assert store.age_s is None
        assert await positions.nodes("tracker") == [ROW]
        removing = {"remove", "delete", "forget", "evict", "end"}
        assert [name for name in dir(positions) if name.partition("_")[0] in removing] == ["end_capacity"]

    async def test_a_node_says_where_it_is_now_also_where_it_went_back(self, records: RecordHarness) -> None:
        positions = self.kind(await records.client(POSITIONS))
        await positions.report(ROW)
        restored = replace(ROW, sequence=40, applied_through=40)

        await positions.report(restored)

        assert await positions.nodes("tracker") == [restored]

    async def test_a_floor_moves_up_and_never_down(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(POSITIONS)), self.kind(await records.client(POSITIONS))
        higher = replace(FLOOR, floor=90, published_by="node-1")

        raised = [await here.publish_floor(FLOOR), await there.publish_floor(higher), await here.publish_floor(FLOOR)]

        assert raised == [True, True, False]
        assert await here.floors() == [higher]

    async def test_a_new_generation_starts_its_floor_anew(self, records: RecordHarness) -> None:
        positions = self.kind(await records.client(POSITIONS))
        anew = replace(FLOOR, generation=3, floor=1)
        await positions.publish_floor(FLOOR)

        assert await positions.publish_floor(anew)
        assert not await positions.publish_floor(replace(FLOOR, floor=900))
        assert await positions.floors() == [anew]

    async def test_of_floors_published_at_once_the_highest_stands(self, records: RecordHarness) -> None:
        clients = [self.kind(await records.client(POSITIONS)) for _ in range(3)]

        await asyncio.gather(
            *(each.publish_floor(replace(FLOOR, floor=75 - number)) for number, each in enumerate(clients * 2))
        )

        assert [floor.floor for floor in await clients[0].floors()] == [75]

    @pytest.mark.spec("C-018")
    async def test_the_higher_of_the_floor_and_the_logs_beginning_decides(self, records: RecordHarness) -> None:
        positions = self.kind(await records.client(POSITIONS))
        await positions.publish_floor(FLOOR)
        await positions.publish_floor(replace(FLOOR, domain="pages", floor=900))

        assert await positions.write_fence("tracker", LogPosition(2, 69)) == LogPosition(2, 70)
        assert await positions.write_fence("tracker", LogPosition(2, 71)) == LogPosition(2, 71)
        assert await positions.write_fence("vectors", LogPosition(1, 5)) == LogPosition(1, 5)

    async def test_a_pin_is_renewed_and_let_go_by_its_revision(self, records: RecordHarness) -> None:
        positions = self.kind(await records.client(POSITIONS))
        first = await positions.pins.put(PIN)
        renewed = await positions.pins.put(replace(PIN, renewed_at=AT + timedelta(seconds=15)))

        with pytest.raises(Conflict):
            await positions.pins.remove("tracker", "node-0", expected=first.revision)
        await positions.pins.remove("tracker", "node-0", expected=renewed.revision)

        assert await positions.pins.every() == []
        assert await positions.pins.get("tracker", "node-0") is None

    async def test_one_capacity_operation_runs_on_a_log(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(POSITIONS)), self.kind(await records.client(POSITIONS))
        other = replace(OPERATION, operation_id="o2")

        stands = await asyncio.gather(here.begin_capacity(OPERATION), there.begin_capacity(other))

        assert stands[0] == stands[1]
        assert stands[0] in (OPERATION, other)

    async def test_an_operation_is_advanced_and_ended_by_its_own_name(self, records: RecordHarness) -> None:
        positions = self.kind(await records.client(POSITIONS))
        await positions.begin_capacity(OPERATION)
        begun = await positions.capacity("tracker")
        assert begun is not None

        moved = await positions.advance_capacity(
            "tracker", lambda operation: replace(operation, phase="resizing"), operation_id="o1"
        )
        other = await positions.advance_capacity(
            "tracker", lambda operation: replace(operation, phase="done"), operation_id="o2"
        )
        ended_on_old_word = await positions.end_capacity(begun)
        standing = await positions.capacity("tracker")
        assert standing is not None
        ended = await positions.end_capacity(standing)

        assert (moved, other) == (replace(OPERATION, phase="resizing"), None)
        assert (ended_on_old_word, ended) == (False, True)
        assert await positions.capacity("tracker") is None
        assert await positions.advance_capacity("tracker", lambda operation: operation, operation_id="o1") is None

    async def test_what_a_newer_build_wrote_stays(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        positions = self.kind(store)
        await positions.report(ROW)
        await positions.publish_floor(FLOOR)
        for key in ("position.tracker.node-0", "floor.tracker"):
            await add_fields(store, key, lag_s=3)

        await positions.report(replace(ROW, sequence=121))
        await positions.publish_floor(replace(FLOOR, floor=71))

        for key in ("position.tracker.node-0", "floor.tracker"):
            assert (await fields(store, key))["lag_s"] == 3

    async def test_a_row_that_cannot_be_read_is_never_a_shorter_list(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        positions = self.kind(store)
        await positions.report(ROW)
        await positions.report(replace(ROW, node="node-1"))
        await positions.publish_floor(FLOOR)

        await has_no_answer(
            records,
            store,
            lambda: positions.report(ROW),
            lambda: positions.nodes("tracker"),
            positions.pins.every,
            lambda: positions.pins.remove("tracker", "node-0", expected=Revision(1)),
            lambda: positions.publish_floor(FLOOR),
            positions.floors,
            lambda: positions.write_fence("tracker", LogPosition(2, 1)),
            lambda: positions.begin_capacity(OPERATION),
            lambda: positions.capacity("tracker"),
            lambda: positions.admissions.get("node-0"),
            lambda: positions.restarts.put(RESTART),
        )
        await damage(store, "position.tracker.node-1")
        await damage(store, "floor.tracker")

        for call in (positions.nodes("tracker"), positions.write_fence("tracker", LogPosition(2, 1))):
            with pytest.raises(Unavailable):
                await call
