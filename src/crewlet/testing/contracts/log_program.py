"""A program for the log, run on any backend: what two clients were told, step by step, to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from crewlet.base.errors import Unavailable
from crewlet.queue import Log, LogRecord, LogUnreadable, Superseded
from crewlet.testing.contracts.log_harness import Fragment, LogHarness

__all__ = ["Step", "Told", "run_program"]

Verb = Literal[
    "append",
    "lose_append",
    "withhold_append",
    "tail",
    "read",
    "trim",
    "purge",
    "leave",
    "deliver",
    "cut",
    "mend",
    "lose",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that one of the two clients does to one of the two seats.

    The sequence that a step names is the ``back``-th last that its seat's log ended with, 0 where it never had so many.
    """

    verb: Verb
    client: int = 0
    seat: int = 0
    back: int = 0
    sizes: tuple[int, ...] = (1,)
    fragment: Fragment = "beginning"


Told = tuple[object, ...]
"""What came of one step, as every backend must tell it: a sequence is told as its place among those of its seat."""


@dataclass(slots=True)
class _Run:
    """A program under way on one backend. The last client is the one that looks on."""

    harness: LogHarness
    clients: list[Log]
    known: dict[str, list[int]]
    cut: set[int] = field(default_factory=set[int])
    count: int = 0

    async def take(self, step: Step) -> Told:
        seat = (self.harness.seat, self.harness.other)[step.seat]
        try:
            told = await self._told(step, seat)
        except Superseded as refused:
            await self._look()
            told = ("superseded", self._place(seat, refused.tail.sequence), refused.tail.id)
        except LogUnreadable as said:
            told = ("unreadable", self._place(seat, said.sequence))
        except Unavailable:
            told = ("unavailable",)
        await self._look()
        return told

    async def _told(self, step: Step, seat: str) -> Told:
        log, named = self.clients[step.client], self._named(seat, step.back)
        match step.verb:
            case "append" | "lose_append" | "withhold_append":
                return await self._append(step, seat, named)
            case "tail":
                tail = await log.tail(seat)
                return (self._place(seat, tail.sequence), tail.id)
            case "read":
                records = await log.read(seat, after=named)
                return tuple((self._place(seat, each.sequence), each.id, len(each.payload)) for each in records)
            case "trim":
                await log.trim(seat, through=named)
            case "purge":
                await log.purge(seat)
            case _:
                await self._happen(step, seat)
        return ()

    async def _append(self, step: Step, seat: str, expected: int) -> Told:
        if step.client in self.cut:
            # It would wait for as long as an append may.
            return ()
        log = self.clients[step.client]
        if step.verb == "lose_append":
            self.harness.lose_reply(log)
        elif step.verb == "withhold_append":
            self.harness.withhold(log)
        self.count += 1
        records = [LogRecord(f"r{self.count}.{index}", bytes(size)) for index, size in enumerate(step.sizes)]
        at = await log.append(seat, records, expected=expected)
        await self._look()
        return ("appended", self._place(seat, at))

    async def _happen(self, step: Step, seat: str) -> None:
        log = self.clients[step.client]
        match step.verb:
            case "leave":
                await self.harness.leave(seat, step.fragment)
            case "lose":
                await self.harness.lose()
            case "cut":
                await self.harness.cut(log)
                self.cut.add(step.client)
            case _:
                await self.harness.mend(log)
                self.cut.discard(step.client)
        if step.verb == "deliver":
            await self.harness.deliver(log)

    async def _look(self) -> None:
        """See where the logs end, for what later steps name."""
        for seat, known in self.known.items():
            sequence = (await self.clients[-1].tail(seat)).sequence
            if sequence and sequence not in known:
                known.append(sequence)

    def _named(self, seat: str, back: int) -> int:
        known = self.known[seat]
        return known[-1 - back] if back < len(known) else 0

    def _place(self, seat: str, sequence: int) -> object:
        known = self.known[seat]
        if sequence == 0:
            return 0
        return known.index(sequence) + 1 if sequence in known else "never an end"


async def run_program(harness: LogHarness, program: Sequence[Step]) -> list[Told]:
    """Run ``program``: what came of each step."""
    clients = [await harness.client() for _ in range(3)]
    run = _Run(harness, clients, {harness.seat: [], harness.other: []})
    return [await run.take(step) for step in program]
