"""What the state log may delete, and what may publish to it: seven classes of one bucket, none of which expires (S0).

Two classes beside them have modules of their own: a seat's pause (``seat_pauses``) and that a seat was onboarded
(``onboardings``). No listing mixes classes (C-091).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from crewlet.base.errors import Conflict
from crewlet.coordination.contract import RecordStore, Revision
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import Stored, change_stored, list_stored, put_stored, read_stored

__all__ = [
    "Admission",
    "BackupCoverage",
    "CapacityOperation",
    "LogPosition",
    "NodePosition",
    "Pin",
    "PositionClass",
    "Positions",
    "PublishedFloor",
    "RestartAcknowledgement",
    "may_write_first",
    "raised",
    "write_fence",
]


@dataclass(frozen=True, slots=True, order=True)
class LogPosition:
    """A place in a domain's log; a later generation is after every place of an earlier one."""

    generation: int
    sequence: int


class NodePosition(SharedRecord, frozen=True, kw_only=True):
    """How far one node has applied one domain's log. Its row is kept for as long as the company is (C-143)."""

    domain: str
    node: str
    generation: int
    sequence: int
    applied_through: int
    reported_at: datetime
    stream_created_at: str = ""
    checkpoint_stored_at: datetime | None = None


class Pin(SharedRecord, frozen=True, kw_only=True):
    """What a backup, or a node that is joining, still needs of a domain's log: all after this place."""

    domain: str
    holder: str
    why: str
    generation: int
    sequence: int
    taken_at: datetime
    renewed_at: datetime


class BackupCoverage(SharedRecord, frozen=True, kw_only=True):
    """Up to where one owner's newest backup covers a domain's log."""

    domain: str
    owner: str
    generation: int
    sequence: int
    taken_at: datetime


class PublishedFloor(SharedRecord, frozen=True, kw_only=True):
    """The first sequence of a domain's log that the trim leaves, published before it deletes what is below.

    ``term`` names what holds the floor where it is, ``held_since`` since when.
    """

    domain: str
    generation: int
    floor: int
    term: str
    published_by: str
    published_at: datetime
    held_since: datetime | None = None
    trim_to: int | None = None


class CapacityOperation(SharedRecord, frozen=True, kw_only=True):
    """A change of a log's ceiling while it runs: publishers wait for it, so it never expires."""

    domain: str
    operation_id: str
    phase: str
    begun_by: str
    begun_at: datetime
    bytes_before: int | None = None
    bytes_wanted: int | None = None
    details: dict[str, Any] = {}


class Admission(SharedRecord, frozen=True, kw_only=True):
    """That one incarnation of a node may publish to the logs."""

    node: str
    incarnation: str
    admitted_at: datetime


class RestartAcknowledgement(SharedRecord, frozen=True, kw_only=True):
    """That a node restarted for a capacity operation."""

    node: str
    operation_id: str
    incarnation: str
    restarted_at: datetime


def raised(standing: PublishedFloor | None, wanted: PublishedFloor) -> PublishedFloor | None:
    """The floor as published; ``None`` where that would move it down: what is below may be deleted already."""
    if standing is None:
        return wanted
    if (wanted.generation, wanted.floor) < (standing.generation, standing.floor):
        return None
    return replace(wanted, unknown=standing.unknown)


def write_fence(published: PublishedFloor | None, first: LogPosition) -> LogPosition:
    """The first place of a log that still counts: the higher of the published floor and what the log begins with."""
    return first if published is None else max(LogPosition(published.generation, published.floor), first)


def may_write_first(checkpoint: LogPosition, fence: LogPosition) -> bool:
    """Whether a node that applied the log through ``checkpoint`` has missed nothing below ``fence``.

    Only then does it know that a subject without a record never had one.
    """
    return (checkpoint.generation, checkpoint.sequence + 1) >= (fence.generation, fence.sequence)


_RecordT = TypeVar("_RecordT", bound=SharedRecord)


class PositionClass(Generic[_RecordT]):
    """The records of one class. ``names`` are what a key is made of after its class, in order."""

    def __init__(
        self, store: RecordStore, key_class: str, kind: type[_RecordT], names: Callable[[_RecordT], tuple[str, ...]]
    ) -> None:
        self._store = store
        self._class = key_class
        self._kind = kind
        self._names = names

    async def get(self, *names: str) -> Stored[_RecordT] | None:
        """The record of these names, or ``None``. Raises ``Unavailable``."""
        return await read_stored(self._store, self._kind, self._key(*names))

    async def every(self, *names: str) -> list[Stored[_RecordT]]:
        """Every record of the class, or those whose key begins with ``names``. Raises ``Unavailable``."""
        return await list_stored(self._store, self._kind, f"{self._key(*names)}.>")

    async def put(self, record: _RecordT) -> Stored[_RecordT]:
        """The record stands, whatever stood before. Raises ``Unavailable``."""
        return await put_stored(self._store, self._key(*self._names(record)), record)

    async def change(
        self, record: _RecordT, step: Callable[[_RecordT | None], _RecordT | None]
    ) -> Stored[_RecordT] | None:
        """Take what stands under the record's names one pure ``step`` further; ``None`` where it refused."""
        return await change_stored(self._store, self._kind, self._key(*self._names(record)), step)

    async def remove(self, *names: str, expected: Revision) -> None:
        """What ``expected`` wrote is gone; an absent record is no error. Raises ``Conflict``, ``Unavailable``."""
        await self._store.delete(self._key(*names), expected=expected)

    def _key(self, *names: str) -> str:
        return ".".join((self._class, *(key_token(name) for name in names)))


class Positions:
    """The classes by name: ``pins.every("tracker")``, ``admissions.put(…)``.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. A row that cannot be read is never a
    row that needs nothing: the trim deletes nothing, and a first write is refused, until the store answers.
    """

    def __init__(self, store: RecordStore) -> None:
        self._nodes = PositionClass(store, "position", NodePosition, lambda row: (row.domain, row.node))
        self._floors = PositionClass(store, "floor", PublishedFloor, lambda floor: (floor.domain,))
        self._capacity = PositionClass(store, "capacity", CapacityOperation, lambda operation: (operation.domain,))
        self.pins = PositionClass(store, "pin", Pin, lambda pin: (pin.domain, pin.holder))
        self.backups = PositionClass(store, "backup", BackupCoverage, lambda backup: (backup.domain, backup.owner))
        self.admissions = PositionClass(store, "admission", Admission, lambda admission: (admission.node,))
        self.restarts = PositionClass(store, "restart", RestartAcknowledgement, lambda restart: (restart.node,))

    async def report(self, position: NodePosition) -> NodePosition:
        """The node's row says how far it is. No verb removes a row."""
        return (await self._nodes.put(position)).record

    async def nodes(self, domain: str) -> list[NodePosition]:
        """The row of every node that ever applied the domain."""
        return [each.record for each in await self._nodes.every(domain)]

    async def publish_floor(self, floor: PublishedFloor) -> bool:
        """The floor stands; false where that would have moved it down, so that nothing was written."""
        return await self._floors.change(floor, lambda standing: raised(standing, floor)) is not None

    async def floors(self) -> list[PublishedFloor]:
        """Every domain's floor."""
        return [each.record for each in await self._floors.every()]

    async def write_fence(self, domain: str, first: LogPosition) -> LogPosition:
        """What a node's checkpoint is held against before a first write; ``first`` is read from the domain's log.

        Lists the floors and nothing else (C-017).
        """
        published = next((floor for floor in await self.floors() if floor.domain == domain), None)
        return write_fence(published, first)

    async def begin_capacity(self, operation: CapacityOperation) -> CapacityOperation:
        """The operation on the domain's log that stands: this one, unless another was begun before."""
        stands = await self._capacity.change(operation, lambda standing: operation if standing is None else standing)
        assert stands is not None, "an operation that stands is not refused"
        return stands.record

    async def capacity(self, domain: str) -> Stored[CapacityOperation] | None:
        """The operation on the domain's log, or ``None`` where none runs."""
        return await self._capacity.get(domain)

    async def advance_capacity(
        self, domain: str, step: Callable[[CapacityOperation], CapacityOperation | None], *, operation_id: str
    ) -> CapacityOperation | None:
        """Take one operation a pure ``step`` further; ``None`` where it refused, or that operation does not run."""
        standing = await self._capacity.get(domain)
        if standing is None:
            return None

        def of_this(found: CapacityOperation | None) -> CapacityOperation | None:
            return None if found is None or found.operation_id != operation_id else step(found)

        changed = await self._capacity.change(standing.record, of_this)
        return None if changed is None else changed.record

    async def end_capacity(self, operation: Stored[CapacityOperation]) -> bool:
        """The operation that was read is over; false where it changed since."""
        try:
            await self._capacity.remove(operation.record.domain, expected=operation.revision)
        except Conflict:
            return False
        return True
