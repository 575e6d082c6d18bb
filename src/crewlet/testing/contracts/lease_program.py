"""A random program over a few leases: processes that claim, renew and release while stores and processes fail them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeVar

from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, Lease, RecordStore
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, Claimant, LeaseHarness
from crewlet.testing.contracts.lease_register import Register
from crewlet.testing.contracts.lease_steps import Steps

__all__ = ["FAULTS", "RESOURCES", "Fault", "LeaseStep", "follow_leases"]

RESOURCES: Final = {"seat:ada": LEASE_TTL_S, "worker:tick": 1.0, "move:board": 12.0}
FAULTS: Final = ("none", "lost reply", "cut after", "withheld", "cut", "given up", "killed")
Fault = Literal["none", "lost reply", "cut after", "withheld", "cut", "given up", "killed"]
_PROCESSES: Final = 3
_T = TypeVar("_T")
_BeforeWrite = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class LeaseStep:
    """``what`` process ``who`` does to ``resource``, and what goes wrong at its ``at``-th write, request side or store.

    A wait lasts ``at`` quarters of a second; ``deliver`` lets arrive what was withheld of the process's writes;
    ``again`` puts another process in its place. ``old`` acts on the process's tenure before its last.
    """

    what: Literal["claim", "renew", "release", "wait", "deliver", "again"]
    who: int = 0
    resource: str = "seat:ada"
    fault: Fault = "none"
    at: int = 1
    old: bool = False


class _Process:
    """One process: its claimant, how its next steps fail, and what it was granted."""

    def __init__(self, claimant: Claimant, stores: list[RecordStore], steps: Steps) -> None:
        self.claimant = claimant
        self.stores = stores
        self.steps = steps
        self.granted: dict[str, Lease] = {}
        self.old: dict[str, Lease] = {}
        self.withheld: dict[str, RecordStore] = {}


async def follow_leases(harness: LeaseHarness, program: list[LeaseStep]) -> dict[str, int]:
    """Run ``program``; raises ``AssertionError`` where a lease said what it must not. Returns counts of its words."""
    run = _Run(harness)
    for step in program:
        await run.take(step)
    await run.settle()
    return run.told


class _Run:
    def __init__(self, harness: LeaseHarness) -> None:
        self.told: dict[str, int] = {}
        self._harness = harness
        self._processes: dict[int, _Process] = {}
        self._registers = {resource: Register() for resource in RESOURCES}

    async def take(self, step: LeaseStep) -> None:
        """One step, checked."""
        if step.what == "wait":
            await self._harness.advance(step.at / 4)
            return
        process = await self._process(step.who)
        if step.what == "deliver":
            await self._deliver(process)
        elif step.what == "again":
            self._processes.pop(step.who)
        elif step.what == "claim":
            await self._claim(process, step)
        elif (lease := (process.old if step.old else process.granted).get(step.resource)) is not None:
            await (self._renew if step.what == "renew" else self._release)(process, step, lease)

    async def settle(self) -> None:
        """In the end everything is claimable: what was in the way has lapsed."""
        for process in self._processes.values():
            await self._deliver(process)
        await self._harness.lapse(max(RESOURCES.values()))
        last = await self._process(_PROCESSES)
        for resource in RESOURCES:
            answer = await last.claimant.claim(resource, ttl_s=RESOURCES[resource])
            assert isinstance(answer, Lease), answer
            self._registers[resource].grant(answer, self._now())

    async def _process(self, who: int) -> _Process:
        if who not in self._processes:
            steps = Steps()
            claimant = await self._harness.claimant(f"node-{who}", steps=steps)
            self._processes[who] = _Process(claimant, [*self._harness.stores(claimant).all], steps)
        return self._processes[who]

    def _now(self) -> datetime:
        return self._harness.now()

    async def _claim(self, process: _Process, step: LeaseStep) -> None:
        ttl_s, register = RESOURCES[step.resource], self._registers[step.resource]
        try:
            answer = await self._spoiled(process, step, process.claimant.claim(step.resource, ttl_s=ttl_s))
        except Unavailable:
            assert step.fault not in ("none", "lost reply"), "a claim failed, and nothing was wrong"
            self._tell("claim failed")
            register.fail(process.claimant.owner, self._over_by(process, ttl_s))
            return
        if isinstance(answer, Lease):
            register.grant(answer, self._now())
            if step.resource in process.granted:
                process.old[step.resource] = process.granted[step.resource]
            process.granted[step.resource] = answer
            self._tell("granted")
        elif isinstance(answer, ClaimRefused):
            register.refuse(answer, self._now())
            self._tell("refused")
        elif step.fault == "given up":
            observer = await self._process(_PROCESSES)
            standing = await observer.claimant.leases.holder(step.resource)
            register.give_up(process.claimant.owner, standing, self._now())
            self._tell("claim given up")
        else:
            register.fail(process.claimant.owner, self._over_by(process, ttl_s))
            self._tell("claim killed")

    async def _renew(self, process: _Process, step: LeaseStep, lease: Lease) -> None:
        register, ttl_s = self._registers[step.resource], RESOURCES[step.resource]
        try:
            renewing = process.claimant.leases.renew(lease, ttl_s=ttl_s)
            answer = await self._spoiled(process, step, _wrapped(renewing))
        except Unavailable:
            assert step.fault not in ("none", "lost reply"), "a renewal failed, and nothing was wrong"
            answer = None
        if answer is None:
            register.renew_perhaps(lease, self._now(), ttl_s)
            self._tell("renewal unheard")
            return
        (renewed,) = answer
        register.renew(lease, renewed, self._now())
        if renewed is not None:
            process.granted[step.resource] = renewed
        self._tell("lost" if renewed is None else "renewed")

    async def _release(self, process: _Process, step: LeaseStep, lease: Lease) -> None:
        register = self._registers[step.resource]
        answer = None
        try:
            answer = await self._spoiled(process, step, _wrapped(process.claimant.leases.release(lease)))
        except Unavailable:
            assert step.fault not in ("none", "lost reply"), "a release failed, and nothing was wrong"
        register.release(lease, surely=answer is not None, now=self._now())
        self._tell("release unheard" if answer is None else "released")

    async def _spoiled(self, process: _Process, step: LeaseStep, work: Coroutine[Any, Any, _T]) -> _T | None:
        """The work's result with its fault on the way; ``None`` where it was stopped. Raises what it raises."""
        if step.fault == "given up":
            process.steps.stop_in(step.at)
        elif step.fault == "killed":
            process.steps.die_in(step.at)
            self._processes = {who: each for who, each in self._processes.items() if each is not process}
        elif step.fault == "cut":
            await self._harness.cut(process.stores[step.at % len(process.stores)])
        elif step.fault != "none":
            process.steps.before_write = self._spoiler(process, step)
        try:
            return await process.steps.run(work)
        finally:
            process.steps.before_write = _nothing
            process.steps.stop_never()
            if step.fault in ("cut", "cut after"):
                await self._harness.mend(*process.stores)

    def _spoiler(self, process: _Process, step: LeaseStep) -> _BeforeWrite:
        spoil = {
            "lost reply": self._harness.lose_reply,
            "cut after": self._harness.cut_after_write,
            "withheld": self._harness.withhold,
        }[step.fault]
        made = 0

        def before_write(name: str, _number: int) -> None:
            nonlocal made
            made += 1
            if made == step.at:
                store = next(each for each in process.stores if each.name == name)
                if step.fault == "withheld":
                    process.withheld[name] = store
                spoil(store)

        return before_write

    async def _deliver(self, process: _Process) -> None:
        late, process.withheld = process.withheld, {}
        for store in late.values():
            await self._harness.deliver(store)
        for resource, register in self._registers.items():
            if process.claimant.owner in register.in_the_way and late:
                register.in_the_way[process.claimant.owner] = self._now() + timedelta(seconds=RESOURCES[resource])
            if resource in process.granted and late:
                register.renew_perhaps(process.granted[resource], self._now(), RESOURCES[resource])

    def _over_by(self, process: _Process, ttl_s: float) -> datetime | None:
        return None if process.withheld else self._now() + timedelta(seconds=ttl_s)

    def _tell(self, what: str) -> None:
        self.told[what] = self.told.get(what, 0) + 1


def _nothing(_name: str, _number: int) -> None:
    """No fault."""


async def _wrapped(work: Awaitable[_T]) -> tuple[_T]:
    """Its answer, told apart from none."""
    return (await work,)
