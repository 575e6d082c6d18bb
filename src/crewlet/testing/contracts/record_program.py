"""A program for the record store, run on any backend: what two clients were told, step by step, to be compared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Change, Record, RecordStore, Revision, Slot, Watch
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["CLASSES", "PROGRAM_SLOT", "Program", "Step", "Told", "run_program"]

PROGRAM_SLOT = Slot("program", 4.0, "records of a program; it is over long before they are old, unless it waits")
CLASSES = ("a", "b")

Verb = Literal[
    "get",
    "create",
    "update",
    "delete",
    "list",
    "last",
    "sweep",
    "sweep_none",
    "watch",
    "read",
    "cut",
    "mend",
    "lose_update",
    "lose_delete",
    "withhold_update",
    "withhold_delete",
    "deliver",
    "age",
]


_LOOKS = frozenset({"get", "list", "last", "watch", "read"})
_EVENTS = frozenset({"sweep", "sweep_none", "age", "cut", "mend", "deliver"})
_AN_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that one of the two clients does.

    What a write expects is the revision that its key had ``back`` writes ago, removals not counted; the last it had
    is 0. Where it never had so many, it is one that nothing ever has.
    """

    verb: Verb
    client: int = 0
    key: str = ""
    value: bytes = b""
    back: int = 0


Program = Sequence[Step]
Told = tuple[object, ...]
"""What came of one step, as every backend must tell it."""


@dataclass(slots=True)
class _Run:
    """A program under way on one backend."""

    harness: RecordHarness
    clients: list[RecordStore]
    opened: AsyncExitStack
    watches: dict[int, Watch] = field(default_factory=dict[int, Watch])
    revisions: dict[str, list[Revision]] = field(default_factory=dict[str, list[Revision]])
    cut: set[int] = field(default_factory=set[int])

    async def take(self, step: Step) -> Told:
        try:
            told = await self._told(step)
        except Conflict as conflict:
            told = ("conflict", conflict.current)
        except Unavailable:
            told = ("unavailable",)
        if step.verb not in _LOOKS:
            await self._note(step.key)
        return told

    async def _told(self, step: Step) -> Told:
        if step.verb in _LOOKS:
            return await self._look(step)
        if step.verb in _EVENTS:
            return await self._happen(step)
        return await self._write(step)

    async def _look(self, step: Step) -> Told:
        store = self.clients[step.client]
        match step.verb:
            case "get":
                told = _shown(await store.get(step.key))
            case "list":
                told = _all_shown(await store.list(step.key))
            case "last":
                told = (await store.last_revision(),)
            case "watch":
                told = await self._open(step.client)
            case _:
                told = await self._read(step.client)
        return told

    async def _write(self, step: Step) -> Told:
        store, spoil = self.clients[step.client], step.verb.partition("_")[0]
        if step.verb == "create":
            return _shown(await store.create(step.key, step.value))
        if step.client in self.cut:
            spoil = ""  # it would wait for a later write
        if spoil == "lose":
            self.harness.lose_reply(store)
        elif spoil == "withhold":
            self.harness.withhold(store)
        expected = self._expected(step)
        if step.verb.endswith("update"):
            return _shown(await store.update(step.key, step.value, expected=expected))
        await store.delete(step.key, expected=expected)
        return ("removed",)

    async def _happen(self, step: Step) -> Told:
        store = self.clients[step.client]
        match step.verb:
            case "sweep":
                return (await store.purge_markers(before=self.harness.now() + _AN_HOUR),)
            case "sweep_none":
                return (await store.purge_markers(before=self.harness.now() - _AN_HOUR),)
            case "age":
                await self.harness.advance((PROGRAM_SLOT.age_s or 0) + 0.5)
            case "cut":
                await self.harness.cut(store)
                self.cut.add(step.client)
            case _:
                await self.harness.mend(store)
                self.cut.discard(step.client)
        if step.verb == "deliver":
            await self.harness.deliver(store)
        return ()

    async def _open(self, client: int) -> Told:
        watch = self.clients[client].watch(*(f"{each}.>" for each in CLASSES))
        self.watches[client] = await self.opened.enter_async_context(watch)
        return _all_shown(self.watches[client].answer)

    async def _read(self, client: int) -> Told:
        """What has changed since the last reading: the last that the watch told of each key."""
        watch = self.watches.get(client)
        if watch is None:
            return ()
        last = await self.clients[client].last_revision()
        changes: dict[str, Change] = {}
        while True:
            try:
                async with asyncio.timeout(self._patience(watch, last)):
                    change = await watch.next()
            except TimeoutError:
                return tuple(_changed(change) for change in _in_order(changes.values()))
            changes[change.key] = change

    def _patience(self, watch: Watch, last: Revision) -> float:
        return 0.0 if watch.position >= last else 10.0

    async def _note(self, key: str) -> None:
        """Look at what stands behind the program's back, for what later steps expect."""
        if key:
            self.revisions.setdefault(key, [])
        for name, known in self.revisions.items():
            found = await self.clients[-1].get(name)
            if found is not None and found.revision not in known:
                known.append(found.revision)

    def _expected(self, step: Step) -> Revision:
        known = self.revisions.get(step.key, [])
        return known[-1 - step.back] if step.back < len(known) else Revision(10**6)


async def run_program(harness: RecordHarness, program: Program) -> list[Told]:
    """Run ``program``: what came of each step."""
    clients = [await harness.client(PROGRAM_SLOT) for _ in range(3)]
    async with AsyncExitStack() as opened:
        run = _Run(harness, clients, opened)
        return [await run.take(step) for step in program]


def _shown(record: Record | None) -> Told:
    return ("absent",) if record is None else (record.key, record.value, record.revision)


def _all_shown(records: Iterable[Record]) -> Told:
    return tuple(sorted(_shown(record) for record in records))


def _changed(change: Change) -> Told:
    return (change.key, None if change.record is None else change.record.value, change.revision)


def _in_order(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: change.revision)
