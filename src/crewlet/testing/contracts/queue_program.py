"""A program for the queue, run on any backend: what two clients' handlers saw of it, step by step, to be compared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from crewlet.events import decode
from crewlet.queue import Ack, Batch, BatchOptions, Defer, Delivery, EventQueue, Nak, Outcome, QueueConfig
from crewlet.testing.contracts.queue_harness import SCALED, QueueHarness, event
from crewlet.testing.waiting import wait_until

__all__ = ["PROGRAM_CONFIG", "Answer", "Program", "Seen", "Step", "follow", "record"]

PROGRAM_CONFIG: QueueConfig = replace(SCALED, ack_wait_s=3600.0, nak_backoff_first_s=0.25, nak_backoff_max_s=0.25)
"""A pause after a failure that outlasts serving whatever waits, and an ack clock that never matters."""

Answer = Literal["ack", "nak", "raise", "defer", "hang"]
Verb = Literal["publish", "attach", "attach_batch", "detach", "quiesce", "unquiesce", "hold", "lift", "crash"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: by which of the two clients, and for a publish what its deliveries are answered.

    A program's answers hold failures or deferrals, not both: which of the two comes back first once a failure's pause
    is over is left open, and a deferral stops its attachment there.
    """

    verb: Verb
    client: int = 0
    name: str = ""
    answers: tuple[Answer, ...] = ()


Program = Sequence[Step]


@dataclass(frozen=True, slots=True)
class Seen:
    """What can be seen once a step's consequences are over.

    ``headrooms`` are those of each event's deliveries so far, in order. ``calls`` are the handler's calls in order,
    each with its events, as long as the contract settles that order: until two clients were attached together, and
    until a failure was waiting out its pause. Of what came after a failure the order of first calls is settled still.
    """

    headrooms: dict[str, list[int]]
    calls: list[tuple[str, ...]]
    first: list[str]
    buried: list[str]
    retained: int


@dataclass(slots=True)
class _Run:
    """A program under way on one backend."""

    harness: QueueHarness
    clients: list[EventQueue]
    answers: dict[str, tuple[Answer, ...]] = field(default_factory=dict[str, tuple[Answer, ...]])
    log: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    calls: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    settled: int | None = None
    attached: set[int] = field(default_factory=set[int])
    hanging: set[int] = field(default_factory=set[int])
    shared: bool = False
    crashes: int = 0

    async def take(self, step: Step) -> None:
        client, inbox = self.clients[step.client], self.harness.inbox()
        match step.verb:
            case "publish":
                event_id = f"e{len(self.answers)}"
                self.answers[event_id] = step.answers
                await client.publish(inbox.topic, event(event_id, age=1000 - len(self.answers), talk=step.name))
            case "attach" | "attach_batch":
                await self._attach(step)
            case "detach":
                await client.detach(inbox)
                self.attached.discard(step.client)
                self.hanging.discard(step.client)
            case "quiesce":
                await client.quiesce(inbox)
            case "unquiesce":
                await client.unquiesce(inbox)
            case "hold":
                await client.hold(inbox, step.name)
            case "lift":
                await client.lift(inbox, step.name)
            case "crash":
                await self._crash(step.client)

    async def idle(self) -> None:
        for number in self.attached - self.hanging:
            await self.clients[number].wait_idle(self.harness.inbox())

    async def seen(self) -> Seen:
        headrooms: dict[str, list[int]] = {}
        for event_id, headroom in self.log:
            headrooms.setdefault(event_id, []).append(headroom)
        letters = await self.harness.dead_letters(self.harness.inbox())
        return Seen(
            headrooms=headrooms,
            calls=[] if self.shared else self.calls[: self.settled],
            first=[] if self.shared else [*headrooms],
            buried=sorted(decode(letter.payload).id for letter in letters),
            retained=await self.harness.retained(self.harness.inbox().topic),
        )

    async def _attach(self, step: Step) -> None:
        if step.client in self.attached:
            return
        self.attached.add(step.client)
        self.shared = self.shared or len(self.attached) > 1
        client, inbox = self.clients[step.client], self.harness.inbox()
        if step.verb == "attach":
            await client.subscribe(inbox, lambda delivery: self._work(step.client, delivery))
        else:
            options = BatchOptions(max_events=3)
            await client.subscribe_batch(
                inbox, self._work_batch, partition=lambda event: str(event.payload["talk"]), options=lambda: options
            )

    async def _crash(self, number: int) -> None:
        self.crashes += 1
        await self.harness.crash(self.clients[number])
        self.attached.discard(number)
        self.hanging.discard(number)
        self.clients[number] = await self.harness.client(f"again{self.crashes}")
        if not self.hanging:
            await self.clients[number].release_held(self.harness.inbox())

    async def _work(self, number: int, delivery: Delivery) -> Outcome:
        self.calls.append((delivery.event.id,))
        answer = self._note(delivery)
        if answer in ("nak", "raise") and self.settled is None:
            self.settled = len(self.calls)
        if answer == "hang":
            self.hanging.add(number)
            await asyncio.Event().wait()
        if answer == "raise":
            raise RuntimeError("as the program says")
        return {"nak": Nak("as the program says"), "defer": Defer("as the program says")}.get(answer, Ack())

    async def _work_batch(self, batch: Batch) -> Outcome:
        # A failure's pause ends for each message apart, which leaves open what the next haul takes together.
        self.calls.append(tuple(delivery.event.id for delivery in batch.deliveries))
        answers = [self._note(delivery) for delivery in batch.deliveries]
        return Defer("as the program says") if "defer" in answers else Ack()

    def _note(self, delivery: Delivery) -> Answer:
        self.log.append((delivery.event.id, delivery.headroom))
        answers = self.answers[delivery.event.id]
        spent = self.harness.config.max_deliver - delivery.headroom
        return answers[spent - 1] if spent <= len(answers) else "ack"


async def record(harness: QueueHarness, program: Program) -> list[Seen]:
    """Run ``program`` where time is virtual: what was seen after each step, all consequences over."""
    run, seen = await _begun(harness), list[Seen]()
    for step in program:
        await run.take(step)
        await harness.advance(2.0)
        await run.idle()
        seen.append(await run.seen())
    return seen


async def follow(harness: QueueHarness, program: Program, expected: list[Seen]) -> None:
    """Run ``program`` and see the same. Raises ``AssertionError`` with the first step after which it is not so."""
    run = await _begun(harness)
    for number, (step, wanted) in enumerate(zip(program, expected, strict=True)):
        await run.take(step)
        await _reached(run, wanted, f"step {number}, {step}")
    await harness.advance(harness.config.nak_backoff_max_s + harness.quiet_s)
    await _reached(run, expected[-1], "the end")


async def _begun(harness: QueueHarness) -> _Run:
    run = _Run(harness, [await harness.client("first"), await harness.client("second")])
    await run.clients[0].ensure_subscription(harness.inbox())
    return run


async def _reached(run: _Run, wanted: Seen, where: str) -> None:
    async def there() -> bool:
        return await run.seen() == wanted

    try:
        await wait_until(there, timeout_s=6.0)
        async with asyncio.timeout(6.0):
            await run.idle()
    except TimeoutError:
        found = await run.seen()
        raise AssertionError(f"after {where}: expected {wanted}, found {found}") from None
