"""What one process has to write to one scope's record: one write at a time, in order, over a cached revision.

Many writers of one record run each other out of attempts, however they wait. So a process has one write of a record
outstanding, which takes along all that has come meanwhile, each judged by what those before it left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from random import Random
from typing import Protocol

from crewlet.base import limits
from crewlet.base.errors import Conflict, Fenced, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination.contract import RecordStore, Revision
from crewlet.coordination.records.budget_pace import SharedPace
from crewlet.coordination.records.budget_record import BudgetRecord, scope_key, without_lanes
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.records.stored import read_stored

__all__ = ["BudgetLine", "LineEntry", "turn_of"]


class LineEntry(Protocol):
    """One change that waits to be written."""

    @property
    def lanes(self) -> Collection[str]:
        """The lanes by which this change is known again; they must not be taken away while it waits."""
        ...

    @property
    def reads_first(self) -> bool:
        """Whether it may be decided without a write, so that a cached record is not good enough."""
        ...

    def stands_in(self, record: BudgetRecord) -> bool:
        """Whether the change has been made already."""
        ...

    def check(self) -> None:
        """Asked before each attempt but the first. Raises ``Fenced`` where this process may not make it any more."""
        ...

    def applied(self, record: BudgetRecord) -> BudgetRecord:
        """The record with the change made."""
        ...

    def decided(self, record: BudgetRecord) -> None:
        """The change stands, in this record."""
        ...

    def held_up(self, error: Unavailable) -> bool:
        """Whether it stands is not known; true where it keeps its place until that is."""
        ...

    def dropped(self, error: Fenced | Unavailable) -> None:
        """It is not in line any more, and this process will not make it."""
        ...


class BudgetLine:
    """One record's entries, in the order in which they came. The owner task runs while there are any."""

    def __init__(self, scope: str, store: RecordStore, chance: Random, tasks: Tasks) -> None:
        self._scope = scope
        self._key = scope_key(scope)
        self._store = store
        self._chance = chance
        self._tasks = tasks
        # The entries that wait, each with whether a write of it was tried.
        self._waiting: dict[LineEntry, bool] = {}
        self._known: tuple[BudgetRecord, Revision | None] | None = None
        self._pace = SharedPace(chance)
        self._worker: asyncio.Task[None] | None = None
        # The turns that ended here, each with when its lanes may go.
        self._ended: dict[str, float] = {}

    @property
    def scope(self) -> str:
        """Whose record it is."""
        return self._scope

    @property
    def known(self) -> BudgetRecord | None:
        """The record as this process knows it, where it does."""
        return None if self._known is None else self._known[0]

    @property
    def worker(self) -> asyncio.Task[None] | None:
        """The owner task, while something waits."""
        return self._worker

    @property
    def waiting(self) -> tuple[LineEntry, ...]:
        """What is not decided, in order."""
        return (*self._waiting,)

    def join(self, entry: LineEntry) -> None:
        """Wait in line behind what is there. Raises ``Unavailable`` where the line is full: nothing will be done."""
        if len(self._waiting) >= limits.BUDGET_LINE_MAX:
            raise Unavailable(f"{self._scope}: {len(self._waiting)} changes of its budget record wait already")
        self._waiting[entry] = False
        if self._worker is None:
            self._worker = self._tasks.start(self._scope, self._work())

    def drop_all(self, error: Unavailable) -> None:
        """Nothing waits any more; each entry is told why."""
        for entry in self.waiting:
            del self._waiting[entry]
            entry.dropped(error)

    def forget_turn(self, turn_id: str) -> None:
        """The lanes of a turn go with the first write after ``limits.BUDGET_TURN_LANES_S``, sooner where many ended."""
        self._ended[turn_id] = _now_s() + limits.BUDGET_TURN_LANES_S
        for oldest in [*islice(self._ended, max(0, len(self._ended) - limits.BUDGET_ENDED_TURNS_MAX))]:
            self._ended[oldest] = 0.0

    def turns_ended(self) -> frozenset[str]:
        """The turns that ended here and have lanes still."""
        return frozenset(self._ended)

    async def _work(self) -> None:
        pause_s = limits.BUDGET_OUTAGE_PAUSE_FIRST_S
        try:
            while self._waiting:
                try:
                    await self._write_next()
                    pause_s = limits.BUDGET_OUTAGE_PAUSE_FIRST_S
                except Unavailable as error:
                    self._known = None
                    for entry in self.waiting:
                        if not entry.held_up(error):
                            del self._waiting[entry]
                    await asyncio.sleep(pause_s * self._chance.uniform(0.5, 1.0))
                    pause_s = min(2 * pause_s, limits.BUDGET_OUTAGE_PAUSE_MAX_S)
        except Exception as error:
            # What cannot happen did: each entry is told, since the next would only meet it again.
            self.drop_all(Unavailable(f"{self._scope}: {error!r}"))
            raise
        finally:
            self._worker = None

    async def _write_next(self) -> None:
        """Decide what is at the head of the line. Raises ``Unavailable``: also where every attempt was overtaken."""
        await self._let_others_in()
        entries = [*islice(self._waiting, limits.BUDGET_ENTRIES_AT_ONCE_MAX)]
        if any(entry.reads_first for entry in entries):
            self._known = None
        for attempt, pause_s in enumerate(chain(self._pauses_s(), (None,)), 1):
            began_s = _now_s()
            record, revision = await self._standing()
            entries = self._undecided(entries, record)
            changes = self._changes(entries, record)
            try:
                if changes and changes[-1][1] != record:
                    await self._write(changes[-1][1], revision)
                    self._pace.wrote(_now_s(), attempts=attempt, round_s=_now_s() - began_s)
            except Conflict:
                self._known = None
                self._pace.overtaken(_now_s())
                if pause_s is not None:
                    await asyncio.sleep(pause_s)
            else:
                for entry, changed in changes:
                    del self._waiting[entry]
                    entry.decided(changed)
                return
        raise Unavailable(f"{self._scope}: its budget record changed under every attempt to change it")

    def _undecided(self, entries: Sequence[LineEntry], record: BudgetRecord) -> list[LineEntry]:
        left: list[LineEntry] = []
        for entry in entries:
            if entry.stands_in(record):
                del self._waiting[entry]
                entry.decided(record)
            elif self._may_go_on(entry):
                left.append(entry)
        return left

    def _may_go_on(self, entry: LineEntry) -> bool:
        tried, self._waiting[entry] = self._waiting[entry], True
        try:
            if tried:
                entry.check()
        except Fenced as error:
            del self._waiting[entry]
            entry.dropped(error)
            return False
        return True

    def _changes(self, entries: Sequence[LineEntry], record: BudgetRecord) -> list[tuple[LineEntry, BudgetRecord]]:
        """Each entry with the record as it leaves it; what stands by one before it changes nothing."""
        changes: list[tuple[LineEntry, BudgetRecord]] = []
        for entry in entries:
            record = record if entry.stands_in(record) else entry.applied(record)
            changes.append((entry, record))
        return changes

    async def _standing(self) -> tuple[BudgetRecord, Revision | None]:
        if self._known is None:
            found = await read_stored(self._store, BudgetRecord, self._key)
            self._known = (BudgetRecord(scope=self._scope), None) if found is None else (found.record, found.revision)
        return self._known

    async def _write(self, record: BudgetRecord, expected: Revision | None) -> None:
        over = self._turns_over()
        if over:
            record = without_lanes(record, lambda lane: (turn_of(lane) if "/" in lane else lane) in over)
        value = encode_record(record)
        if expected is None:
            written = await self._store.create(self._key, value)
        else:
            written = await self._store.update(self._key, value, expected=expected)
        self._known = record, written.revision
        for turn_id in over:
            del self._ended[turn_id]

    def _turns_over(self) -> set[str]:
        """The turns whose lanes go now. What waits here is known again by its lane, so that one stays until then."""
        now_s = _now_s()
        waited_for = {turn_of(lane) for entry in self._waiting for lane in entry.lanes} if self._ended else set[str]()
        return {turn_id for turn_id, due_s in self._ended.items() if due_s <= now_s} - waited_for

    async def _let_others_in(self) -> None:
        """Where other processes write the record too, leave it to them for a moment, and read before the next write."""
        if self._pace.is_shared(_now_s()):
            self._known = None
            await asyncio.sleep(self._pace.pause_s(_now_s()))

    def _pauses_s(self) -> Iterable[float]:
        """Between the attempts of one write, a third of a second in all; each is made when it is due, most never."""
        for attempt in range(limits.BUDGET_ATTEMPTS_MAX - 1):
            doubled_s = limits.BUDGET_RETRY_FIRST_S * 2**attempt
            yield self._chance.uniform(0.7, 1.0) * min(limits.BUDGET_RETRY_MAX_S, doubled_s)


def turn_of(lane: str) -> str:
    """The turn whose lane it is, or a worker's lane of it."""
    return lane.partition("/")[0]


def _now_s() -> float:
    return asyncio.get_running_loop().time()
