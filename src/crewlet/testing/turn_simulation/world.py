"""The processes of a simulated company and what they share; what happens to them is somebody else's choice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from crewlet.backends.memory import MemoryBucket, MemoryQueue, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import BUDGETS, CHANNELS, LEDGER, POSITIONS, SeatPause, SeatPauses
from crewlet.coordination.slots import DUTIES, EPOCHS, leases_slot
from crewlet.node import CompanySource
from crewlet.notify import OperatorSource, Sources
from crewlet.org import TokenBudget
from crewlet.queue import QueueConfig, mailboxes_of
from crewlet.testing.fleet_simulation.clocks import NodeClock
from crewlet.testing.played_sources import PlayedBoard, PlayedChat
from crewlet.testing.turn_simulation.node import Shared, SimulatedTurnNode
from crewlet.testing.turn_simulation.outside import Outside
from crewlet.testing.turn_simulation.plan import HANDLES, TurnPlan, company_source
from crewlet.testing.turn_simulation.record import WatchedBroker, WatchedLog
from crewlet.testing.turn_simulation.rules import Findings
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["TurnWorld"]

_MIDNIGHT: Final = datetime(2030, 1, 16, tzinfo=UTC)
_BEFORE_MIDNIGHT_S: Final = 900.0


class TurnWorld:
    """Broker, journal, records, the outside, and every process that there ever was."""

    def __init__(self, plan: TurnPlan, seed: int) -> None:
        self.plan = plan
        self.seed = seed
        self.chance = Random(f"world {seed}")
        started = _MIDNIGHT - timedelta(seconds=self.chance.uniform(0.0, _BEFORE_MIDNIGHT_S))
        self.clock = VirtualClock(started=started)
        self.findings = Findings(self.clock.elapsed_s)
        self.outside = Outside(self.findings)
        self.broker = WatchedBroker(self.clock)
        self.log = WatchedLog(self.clock, self.findings)
        slots = (leases_slot(plan.ttl_s), DUTIES, EPOCHS, POSITIONS, LEDGER, BUDGETS, CHANNELS)
        self.buckets = {slot.name: MemoryBucket(slot, self.clock) for slot in slots}
        self.company = company_source()
        self.chat = PlayedChat()
        self.nodes: list[SimulatedTurnNode] = []
        self.config = QueueConfig(max_deliver=plan.max_deliver)
        self.client = MemoryQueue(self.broker, node="outside", config=self.config)
        self.sources = Sources([OperatorSource(), PlayedBoard(), self.chat])
        self._began: list[asyncio.Task[None]] = []
        self._shared = Shared(
            seed=seed,
            broker=self.broker,
            log=self.log,
            buckets=self.buckets,
            sources=self.sources,
            outside=self.outside,
            config=self.config,
            ttl_s=plan.ttl_s,
            company=lambda: self.company,
        )

    async def open(self) -> None:
        """Every seat has its mailboxes."""
        await self.client.ensure_subscriptions([each for handle in HANDLES for each in mailboxes_of(handle)])

    @property
    def is_past_midnight(self) -> bool:
        """Whether the windows of the day that it began in are over."""
        return self.clock.now() >= _MIDNIGHT

    @property
    def has_ceilings(self) -> bool:
        """Whether the document in force limits anybody's tokens."""
        company = self.company.organization
        return any(each.token_budget != TokenBudget() for each in (company, *company.agent_seats))

    def serving(self) -> list[SimulatedTurnNode]:
        """The processes that run and are to go on running."""
        return [node for node in self.nodes if node.serves]

    def start(self, name: str) -> SimulatedTurnNode:
        """A process begins on the machine ``name``."""
        drift = self.chance.uniform(-limits.STORE_CLOCK_DRIFT, limits.STORE_CLOCK_DRIFT)
        clock = NodeClock(self.clock, skew_s=self.chance.choice((0.0, -2.0, 1.0)), rate=1.0 + drift)
        node = SimulatedTurnNode(len(self.nodes), name, self._shared, clock, lambda: self.kill(node))
        self.nodes.append(node)
        self._began.append(node.process.run(node.start()))
        return node

    def kill(self, node: SimulatedTurnNode) -> None:
        """The process is gone: it reaches nothing and takes no other step, for good."""
        if node.dead:
            return
        node.dead = True
        node.cut(store=True)
        node.queue.crash()
        node.process.stop()

    def leave(self, node: SimulatedTurnNode) -> None:
        """The process ends as it should."""
        node.leaving = True

        async def ended() -> None:
            await node.leave()
            node.dead = True

        self._began.append(node.process.run(ended()))

    def wake(self, node: SimulatedTurnNode) -> None:
        """A process that stood still goes on."""
        if not node.dead:
            node.clock.stood_still_s += self.clock.elapsed_s() - node.process.stopped_at_s
            node.process.wake()

    def store_down(self, *, down: bool) -> None:
        """Whether nobody reaches records and journals."""
        for bucket in self.buckets.values():
            bucket.cut = down
        self.log.cut = down

    async def apply(self, company: CompanySource) -> None:
        """Another document is in force on every node."""
        self.company = company
        changes = [
            node.process.run(node.ceilings_changed()) for node in self.serving() if not node.process.stands_still
        ]
        if changes:
            await asyncio.wait(changes)

    async def pause(self, handle: str, *, stop_running: bool) -> None:
        """A person pauses a seat. Raises ``Unavailable``."""
        asked = SeatPause(handle=handle, by="operator:ann", at=self.clock.now(), stop_running=stop_running)
        await self._pauses().pause(asked)

    async def resume(self, handle: str) -> None:
        """A person lifts it. Raises ``Unavailable``."""
        await self._pauses().lift(handle)

    def failed(self) -> list[str]:
        """The processes that could not begin or end, for a fault of the engine's own."""
        over = [task for task in self._began if task.done() and not task.cancelled()]
        return [f"{task.get_name()}: {task.exception()!r}" for task in over if task.exception() is not None]

    def in_flight(self) -> int:
        """How many turns run in processes that live."""
        return sum(node.runner.in_flight for node in self.nodes if not node.dead and node.runner is not None)

    async def close(self) -> None:
        """End every process that is left."""
        self.store_down(down=True)
        for node in self.nodes:
            if not node.dead:
                node.queue.crash()
            await node.process.end()
        await self.client.close()

    def _pauses(self) -> SeatPauses:
        return SeatPauses(MemoryRecordStore(self.buckets[POSITIONS.name]))
