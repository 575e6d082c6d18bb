"""One node of a simulated company: the engine's own seats, turns, asks and budgets over clients of the twins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from random import Random
from types import SimpleNamespace
from typing import cast

from crewlet.a2a import A2aService, AskTool
from crewlet.backends.memory import MemoryBucket, MemoryLog, MemoryRecordStore
from crewlet.base.errors import CrewletError
from crewlet.base.fence import Fence, ServingPosture
from crewlet.config import NodeConfig
from crewlet.coordination import CHANNELS, LEDGER, POSITIONS, Channels, KvLeases, Ledger, Onboardings, RecordStore
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.inbox import Trigger, TurnJournal, TurnOutcome
from crewlet.llm import Models, ScriptedModel
from crewlet.node.budgeting import open_budgets
from crewlet.node.colleagues import CompanyColleagues
from crewlet.node.company_in_force import CompanyModels, built_company
from crewlet.node.company_parts import CompanySource, placed_seats
from crewlet.node.duty_parts import Incarnation
from crewlet.node.ground import Ground
from crewlet.node.liveness import Liveness
from crewlet.node.node_status import NodeStatusSource
from crewlet.node.seat_onboarding import SeatOnboardings
from crewlet.node.seat_parts import SeatParts, SeatsWith, assemble_seats
from crewlet.node.steering import Steering, SteerOutcome
from crewlet.node.turn_meter import TurnMeters
from crewlet.node.turn_runner import CompanyEpoch, TurnRunner
from crewlet.notify import Sources
from crewlet.queue import QueueConfig
from crewlet.testing.fleet_simulation.clocks import NodeClock
from crewlet.testing.ids import SeededIds
from crewlet.testing.simulated import SimulatedProcess
from crewlet.testing.turn_simulation.clients import SteppedLink, SteppedQueue
from crewlet.testing.turn_simulation.model import PlannedModel
from crewlet.testing.turn_simulation.outside import Outside
from crewlet.testing.turn_simulation.record import WatchedBroker, WatchedLog
from crewlet.testing.turn_simulation.tools import PlayedSurface, PlayedToolHost, played_tools
from crewlet.tools import SeatTools, ToolHost
from crewlet.turns import TurnConfig, TurnEngine

__all__ = ["Shared", "SimulatedTurnNode"]

_TOOL_S = 40.0
_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all processes share, and what is outside them. ``company`` is the document in force."""

    seed: int
    broker: WatchedBroker
    log: WatchedLog
    buckets: Mapping[str, MemoryBucket]
    sources: Sources
    outside: Outside
    config: QueueConfig
    ttl_s: float
    company: Callable[[], CompanySource]


class SimulatedTurnNode:
    """A process from its start to its end. ``leaving``: it drains; ``dead``: it is no more.

    ``dies_at`` and ``stops_at`` are the steps at which it is killed, or made to stand still; ``on_step`` does it.
    """

    def __init__(self, number: int, name: str, shared: Shared, clock: NodeClock, on_step: Callable[[], None]) -> None:
        self.owner = f"{name}:{number}"
        self.name = name
        self.clock = clock
        self.process = SimulatedProcess(self.owner)
        self.steps = 0
        self.steps_left = 0
        self.leaving = False
        self.dead = False
        self.parts: SeatParts | None = None
        self._on_step = on_step
        self._shared = shared
        self._ids = SeededIds(shared.seed * 10_000 + number)
        self._chance = Random(f"{shared.seed} {number}")
        self._stack = AsyncExitStack()
        self._started = asyncio.Event()
        self.queue = SteppedQueue(shared.broker, node=name, config=shared.config, step=self.step)
        self.log = MemoryLog(shared.log, link=SteppedLink(self.step))
        self.stores = {
            slot: MemoryRecordStore(bucket, SteppedLink(self.step)) for slot, bucket in shared.buckets.items()
        }
        self.leases = KvLeases(
            leases=self.stores[LEASES.name],
            duties=self.stores[DUTIES.name],
            epochs=self.stores[EPOCHS.name],
            clock=clock,
            ids=self._ids,
        )
        self._status: NodeStatusSource | None = None
        self.runner: _WatchedRunner | None = None
        self.steering: Steering | None = None

    @property
    def serves(self) -> bool:
        """Whether it runs and is to go on running."""
        return not self.leaving and not self.dead

    @property
    def turns(self) -> frozenset[str]:
        """The turns that run in it now."""
        return frozenset() if self.runner is None else frozenset(self.runner.turns)

    async def step(self) -> None:
        """The process may end here, or stand still."""
        self.steps += 1
        if self.steps_left:
            self.steps_left -= 1
            if not self.steps_left:
                self._on_step()
        if self.process.stands_still:
            await asyncio.sleep(0)

    def cut(self, *, store: bool | None = None, queue: bool | None = None) -> None:
        """Whether it reaches the records and the logs, and the mailboxes."""
        if store is not None:
            for client in self.stores.values():
                client.link.cut = store
            self.log.link.cut = store
        if queue is True:
            self.queue.cut()
        elif queue is False:
            self.queue.heal()

    def heal(self) -> None:
        """It reaches everything, and loses nothing."""
        for link in self.links():
            link.next_write = "arrives"
        self.queue.loses_replies = 0
        self.cut(store=False, queue=False)

    def links(self) -> list[SteppedLink]:
        """Its links to records and logs."""
        return [cast("SteppedLink", client.link) for client in (*self.stores.values(), self.log)]

    async def start(self) -> None:
        """Put everything together and claim seats. What cannot be reached is asked again."""
        while True:
            try:
                await self._start()
            except CrewletError:
                await self._stack.aclose()
                await asyncio.sleep(5.0)
            else:
                self._started.set()
                return

    async def _start(self) -> None:
        shared, clock, ids = self._shared, self.clock, self._ids
        publish = self.queue.publish
        stores = cast("Mapping[str, RecordStore]", self.stores)
        ground = cast(
            "Ground",
            SimpleNamespace(
                queue=self.queue,
                stores=stores,
                log=self.log,
                ledger=Ledger(stores[LEDGER.name], clock),
                writes=SimpleNamespace(publish=publish),
            ),
        )
        asks = A2aService(channels=Channels(stores[CHANNELS.name]), publish=publish, clock=clock, ids=ids)
        colleagues = CompanyColleagues(lambda: shared.company().organization)
        builtins = [AskTool(asks, colleagues), *played_tools(shared.outside, self.owner, self.step)]
        tools = cast("ToolHost", PlayedToolHost(PlayedSurface(builtins)))
        budgeting = open_budgets(ground, lambda: shared.company().organization, clock, ids, self._stack)
        epochs = _Epochs(shared, self)
        self.steering = Steering(self.queue, lambda: 0, clock, ids)
        onboardings = SeatOnboardings(Onboardings(stores[POSITIONS.name], clock))
        self.runner = _WatchedRunner(
            epochs, asks, budgeting.meters, self.steering, onboardings, shared.outside, self.owner
        )
        self._status = NodeStatusSource(
            in_flight=lambda: 0 if self.runner is None else self.runner.in_flight,
            posture=ServingPosture(),
            tool_servers=tools.status,
            started_at=clock.now(),
            broker="twin",
        )
        self.parts = await assemble_seats(
            SeatsWith(
                config=cast(
                    "NodeConfig", SimpleNamespace(max_concurrent=_AT_ONCE, labels={}, coordination="embedded-kv")
                ),
                ground=ground,
                me=Incarnation(owner=self.owner, node_id=self.name, ttl_s=shared.ttl_s),
                leases=self.leases,
                posture=ServingPosture(),
                status=self._status,
                liveness=cast("Liveness", SimpleNamespace(beat=_heard)),
                company=shared.company,
                epoch=epochs,
                tools=tools,
                runner=self.runner,
                budgeting=budgeting,
                sources=shared.sources,
                clock=clock,
                ids=ids,
            ),
            self._stack,
        )
        await self.parts.host.start(placed_seats(shared.company().organization))

    async def leave(self) -> None:
        """End as a process should, once it has begun: running turns finish, seats are given back."""
        await self._started.wait()
        if self.parts is not None and self._status is not None:
            self._status.draining = True
            self.parts.host.drain()
            self.parts.gate.close()
            await self.parts.host.release_all()
        await self.leases.close()
        await self._stack.aclose()
        await self.queue.close()

    async def steer(self, turn_id: str, note_id: str) -> None:
        """Somebody tells a turn of this process something, and may hear that it is taken."""
        assert self.steering is not None
        with suppress(CrewletError):
            steered = await self.steering.steer(turn_id, f"mind {note_id}", by="operator:ann", note_id=note_id)
            if steered.outcome is SteerOutcome.ACCEPTED:
                self._shared.outside.accepted_notes[note_id] = turn_id

    async def ceilings_changed(self) -> None:
        """Another document is in force."""
        if self.parts is not None:
            await self.parts.park.ceilings_changed()

    def built(self, company: CompanySource, model: PlannedModel) -> CompanyEpoch:
        """The company as turns pin it."""
        models = CompanyModels(Models({"default": cast("ScriptedModel", model)}), frozenset())
        return built_company(company, models, self._engine).epoch

    def new_model(self) -> PlannedModel:
        """This process's client of the model."""
        return PlannedModel(self._shared.seed, self._shared.outside, self.step, self._chance)

    def _engine(self, config: TurnConfig) -> TurnEngine:
        patience = replace(config, tool_call_backstop_s=_TOOL_S)
        return TurnEngine(self.queue.publish, self.clock, self._ids, patience)


def _heard(_loop: str) -> None:
    """Nobody watches the loops of a simulated process."""


class _Epochs:
    """The epoch of the document in force, made when it is first asked for."""

    def __init__(self, shared: Shared, node: SimulatedTurnNode) -> None:
        self._shared = shared
        self._node = node
        self._model = node.new_model()
        self._made: tuple[CompanySource, CompanyEpoch] | None = None

    def __call__(self) -> CompanyEpoch:
        company = self._shared.company()
        if self._made is None or self._made[0] is not company:
            self._made = company, self._node.built(company, self._model)
        return self._made[1]


class _WatchedRunner(TurnRunner):
    """Says which turn runs, and finds two of one seat at once. ``turns`` are those that run now."""

    def __init__(
        self,
        epoch: Callable[[], CompanyEpoch],
        asks: A2aService,
        meters: TurnMeters,
        steering: Steering,
        onboardings: SeatOnboardings,
        outside: Outside,
        owner: str,
    ) -> None:
        super().__init__(epoch, asks, meters, steering, onboardings)
        self.turns: set[str] = set()
        self._outside = outside
        self._owner = owner
        self._seats: dict[str, int] = {}

    async def run(self, trigger: Trigger, fence: Fence, journal: TurnJournal, tools: SeatTools) -> TurnOutcome:
        """One turn."""
        handle = trigger.handle
        if self._seats.get(handle) == fence.epoch:
            self._outside.findings.add("one turn", f"{self._owner} runs two turns of {handle} at epoch {fence.epoch}")
        self._seats[handle] = fence.epoch
        self._outside.begins(journal.turn_id, trigger)
        self.turns.add(journal.turn_id)
        try:
            return await super().run(trigger, fence, journal, tools)
        finally:
            self.turns.discard(journal.turn_id)
            if self._seats.get(handle) == fence.epoch:
                del self._seats[handle]
