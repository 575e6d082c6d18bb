"""Saboteurs of positions and of the sweep of markers: floors that go down, rows that go away, records swept along."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import (
    BackupCoverage,
    CapacityOperation,
    LogPosition,
    MarkerSweep,
    NodePosition,
    Pin,
    Positions,
    PublishedFloor,
    RecordStore,
    Revision,
    Stored,
)
from crewlet.coordination.records.positions import PositionClass
from crewlet.coordination.records.stored import put_stored
from crewlet.testing.contracts.slot_marker_sweep import MarkerSweepPromises, Sweeper
from crewlet.testing.contracts.slot_positions import PositionPromises

__all__ = ["POSITION_FAULTS", "SWEEP_FAULTS"]


class PositionFault(Positions):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class ListsTheBucket(PositionFault):
    """A listing of one class meets another's records."""

    caught_by = PositionPromises.test_each_of_the_eight_classes_is_listed_by_itself

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.backups = PositionClass(store, "pin", BackupCoverage, lambda backup: (backup.domain, backup.owner))


class ListsEveryDomain(PositionFault):
    """A domain is told of another's nodes."""

    caught_by = PositionPromises.test_the_rows_of_one_domain_are_listed_without_anothers

    async def nodes(self, domain: str) -> list[NodePosition]:
        return [each.record for each in await self._nodes.every()]


class RowsCanBeRemoved(PositionFault):
    """A node's row can be taken away."""

    caught_by = PositionPromises.test_no_clock_takes_a_nodes_row_and_no_verb_does

    async def remove_node(self, domain: str, node: str) -> None:
        """The row is gone."""


class RowsOnlyGrow(PositionFault):
    """A node that was restored is taken to be where it was."""

    caught_by = PositionPromises.test_a_node_says_where_it_is_now_also_where_it_went_back

    async def report(self, position: NodePosition) -> NodePosition:
        standing = await self._nodes.get(position.domain, position.node)
        if standing is not None and standing.record.sequence > position.sequence:
            return standing.record
        return await super().report(position)


class FloorsGoDown(PositionFault):
    """The last floor that is published stands."""

    caught_by = PositionPromises.test_a_floor_moves_up_and_never_down

    async def publish_floor(self, floor: PublishedFloor) -> bool:
        await self._floors.put(floor)
        return True


class FloorsOnlyGrow(PositionFault):
    """The floor of a generation that was left holds the next one."""

    caught_by = PositionPromises.test_a_new_generation_starts_its_floor_anew

    async def publish_floor(self, floor: PublishedFloor) -> bool:
        standing = await self._floors.get(floor.domain)
        if standing is not None and standing.record.floor > floor.floor:
            return False
        return await super().publish_floor(floor)


class LooksAndThenPublishes(PositionFault):
    """What was looked at is not what the floor is written over."""

    caught_by = PositionPromises.test_of_floors_published_at_once_the_highest_stands

    async def publish_floor(self, floor: PublishedFloor) -> bool:
        standing = await self._floors.get(floor.domain)
        if standing is not None and standing.record.floor > floor.floor:
            return False
        await self._floors.put(floor)
        return True


class TheLogAloneDecides(PositionFault):
    """What the trim is about to delete counts as there."""

    caught_by = PositionPromises.test_the_higher_of_the_floor_and_the_logs_beginning_decides

    async def write_fence(self, domain: str, first: LogPosition) -> LogPosition:
        return first


class TheFloorAloneDecides(PositionFault):
    """What is gone from the log counts as there."""

    caught_by = PositionPromises.test_the_higher_of_the_floor_and_the_logs_beginning_decides

    async def write_fence(self, domain: str, first: LogPosition) -> LogPosition:
        floor = next((each for each in await self.floors() if each.domain == domain), None)
        return first if floor is None else LogPosition(floor.generation, floor.floor)


class AnyFloorDecides(PositionFault):
    """Another domain's floor holds a write."""

    caught_by = PositionPromises.test_the_higher_of_the_floor_and_the_logs_beginning_decides

    async def write_fence(self, domain: str, first: LogPosition) -> LogPosition:
        return max([LogPosition(each.generation, each.floor) for each in await self.floors()] + [first])


class _LooseClass(PositionClass[Pin]):
    async def remove(self, *names: str, expected: Revision) -> None:
        standing = await self.get(*names)
        if standing is not None:
            await super().remove(*names, expected=standing.revision)


class PinsAreLetGoUnread(PositionFault):
    """A pin is let go that was renewed since."""

    caught_by = PositionPromises.test_a_pin_is_renewed_and_let_go_by_its_revision

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.pins = _LooseClass(store, "pin", Pin, lambda pin: (pin.domain, pin.holder))


class OperationsOverlap(PositionFault):
    """A second operation replaces the first."""

    caught_by = PositionPromises.test_one_capacity_operation_runs_on_a_log

    async def begin_capacity(self, operation: CapacityOperation) -> CapacityOperation:
        return (await self._capacity.put(operation)).record


class AnyOperationIsEnded(PositionFault):
    """An operation is ended that moved on since it was read."""

    caught_by = PositionPromises.test_an_operation_is_advanced_and_ended_by_its_own_name

    async def end_capacity(self, operation: Stored[CapacityOperation]) -> bool:
        standing = await self._capacity.get(operation.record.domain)
        return False if standing is None else await super().end_capacity(standing)


class AnyOperationIsAdvanced(PositionFault):
    """A step is taken by whichever operation runs."""

    caught_by = PositionPromises.test_an_operation_is_advanced_and_ended_by_its_own_name

    async def advance_capacity(
        self, domain: str, step: Callable[[CapacityOperation], CapacityOperation | None], *, operation_id: str
    ) -> CapacityOperation | None:
        standing = await self._capacity.get(domain)
        if standing is None:
            return None
        return await super().advance_capacity(domain, step, operation_id=standing.record.operation_id)


class NewPositionFieldsAreLost(PositionFault):
    """A report has what this build knows."""

    caught_by = PositionPromises.test_what_a_newer_build_wrote_stays

    async def report(self, position: NodePosition) -> NodePosition:
        stored = await self._nodes.put(position)
        wiped = await self._store_of_nodes.update(stored.key, b'{"spoiled":true}', expected=stored.revision)
        await self._store_of_nodes.delete(wiped.key, expected=wiped.revision)
        return (await put_stored(self._store_of_nodes, stored.key, replace(position, unknown={}))).record

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self._store_of_nodes = store


class TheUnknownNeedsNothing(PositionFault):
    """Rows that cannot be read are left out."""

    caught_by = PositionPromises.test_a_row_that_cannot_be_read_is_never_a_shorter_list

    async def nodes(self, domain: str) -> list[NodePosition]:
        try:
            return await super().nodes(domain)
        except Unavailable:
            return []


class SweepFault(Sweeper):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class SweepsAListOfItsOwn(SweepFault):
    """A bucket that somebody forgot is never swept."""

    caught_by = MarkerSweepPromises.test_the_old_markers_of_every_bucket_without_an_age_are_gone

    async def sweep(self, stores: Mapping[str, RecordStore], now: datetime) -> MarkerSweep:
        before = now - timedelta(seconds=limits.MARKER_RETENTION_S)
        known = [name for name in stores if name != "positions"]
        return MarkerSweep({name: await stores[name].purge_markers(before=before) for name in known})


class SweepsTheYoung(SweepFault):
    """Every marker goes at once."""

    caught_by = MarkerSweepPromises.test_a_marker_younger_than_three_hours_stays

    async def sweep(self, stores: Mapping[str, RecordStore], now: datetime) -> MarkerSweep:
        return await super().sweep(stores, now + timedelta(seconds=limits.MARKER_RETENTION_S))


class SweepsRecords(SweepFault):
    """What is old goes, marker or not."""

    caught_by = MarkerSweepPromises.test_records_are_untouched

    async def sweep(self, stores: Mapping[str, RecordStore], now: datetime) -> MarkerSweep:
        swept = await super().sweep(stores, now)
        for store in stores.values():
            for record in await store.list("class.live"):
                await store.delete(record.key, expected=record.revision)
        return swept


class SweepsTheKeyOutright(SweepFault):
    """A key that had a marker goes, whatever it holds by then."""

    caught_by = MarkerSweepPromises.test_a_record_that_was_created_again_is_untouched

    async def sweep(self, stores: Mapping[str, RecordStore], now: datetime) -> MarkerSweep:
        swept = await super().sweep(stores, now)
        for store in stores.values():
            for record in await store.list("class.a"):
                await store.delete(record.key, expected=record.revision)
        return swept


class StopsAtTheFirstFailure(SweepFault):
    """A bucket that does not answer ends the sweep."""

    caught_by = MarkerSweepPromises.test_a_bucket_that_does_not_answer_stops_no_other_and_is_swept_the_next_time

    async def sweep(self, stores: Mapping[str, RecordStore], now: datetime) -> MarkerSweep:
        before = now - timedelta(seconds=limits.MARKER_RETENTION_S)
        return MarkerSweep({name: await store.purge_markers(before=before) for name, store in stores.items()})


POSITION_FAULTS: tuple[type[PositionFault], ...] = (
    ListsTheBucket,
    ListsEveryDomain,
    RowsCanBeRemoved,
    RowsOnlyGrow,
    FloorsGoDown,
    FloorsOnlyGrow,
    LooksAndThenPublishes,
    TheLogAloneDecides,
    TheFloorAloneDecides,
    AnyFloorDecides,
    PinsAreLetGoUnread,
    OperationsOverlap,
    AnyOperationIsEnded,
    AnyOperationIsAdvanced,
    NewPositionFieldsAreLost,
    TheUnknownNeedsNothing,
)
SWEEP_FAULTS: tuple[type[SweepFault], ...] = (
    SweepsAListOfItsOwn,
    SweepsTheYoung,
    SweepsRecords,
    SweepsTheKeyOutright,
    StopsAtTheFirstFailure,
)
