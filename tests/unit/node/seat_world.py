"""Nodes with real hosts, hooks and pauses over the twins of broker and store; their turns are played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from crewlet import topics
from crewlet.backends.memory import MemoryBroker, MemoryBucket, MemoryQueue, MemoryRecordStore
from crewlet.base.errors import Fenced
from crewlet.base.fence import Fence, ServingPosture
from crewlet.base.ids import Handle, TurnId
from crewlet.base.trace import Trace
from crewlet.coordination import LEDGER, POSITIONS, KvLeases, Lease, Ledger, SeatPause, SeatPauses
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.events import Event, decode, new_event
from crewlet.events.types import ExternalNotification
from crewlet.inbox import Decision, RunTurn, SeatInboxParts, Trigger, TurnGate, TurnOutcome
from crewlet.node.inbox_front import FrontWork
from crewlet.node.mailboxes import inbox_of
from crewlet.node.seat_admitted import SeatAdmitted
from crewlet.node.seat_holds import SeatHolds
from crewlet.node.seat_parts import SeatAdmission
from crewlet.node.seat_pausing import SeatPausing
from crewlet.node.seat_runtime import SeatRuntime, SeatRuntimeParts
from crewlet.node.seat_steps import NoTakeOver
from crewlet.node.turn_runner import TurnRunner
from crewlet.queue import BatchHandler, BatchOptions, Handler, PartitionKey, Subscription
from crewlet.seats import Host, HostConfig, PlacedSeat
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tools import SeatTools, ToolHost, ToolServerSpec
from tests.unit.node.companies import acme, source

TTL_S = 45.0
HEARTBEAT_S = 15.0


@dataclass
class Log:
    """What happened, in order; a step whose name is in ``broken`` fails."""

    said: list[str] = field(default_factory=list[str])
    broken: dict[str, Exception] = field(default_factory=dict[str, Exception])

    def step(self, what: str) -> None:
        self.said.append(what)
        if what in self.broken:
            raise self.broken[what]


class Queue(MemoryQueue):
    """Says what is attached, held and let go."""

    log: Log

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        self.log.step(f"attach {_short(subscription)}")
        await super().subscribe(subscription, handler)

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Callable[[], BatchOptions] = BatchOptions,
    ) -> None:
        self.log.step(f"attach {_short(subscription)}")
        await super().subscribe_batch(subscription, handler, partition=partition, options=options)

    async def detach(self, subscription: Subscription) -> None:
        was_attached = self.attached(subscription)
        await super().detach(subscription)
        if was_attached:
            self.log.step(f"detach {_short(subscription)}")

    async def hold(self, subscription: Subscription, name: str) -> None:
        self.log.step(f"hold {name}")
        await super().hold(subscription, name)

    async def publish(self, topic: str, event: Event) -> Event:
        if event.type == "agent_spawned" and "spawned" in self.log.broken:
            # Long enough for waiting mail to be delivered behind the gate.
            await asyncio.sleep(0.1)
            raise KeyError("a defect")
        return await super().publish(topic, event)

    def attached(self, subscription: Subscription) -> bool:
        """Whether this process works the mailbox."""
        return subscription in self._attachments


class Tools(ToolHost):
    """Says whose children start and end."""

    log: Log

    async def open_seat(self, handle: Handle, specs: Sequence[ToolServerSpec]) -> SeatTools:
        self.log.step("open tools")
        return await super().open_seat(handle, specs)

    async def close_seat(self, handle: Handle) -> None:
        self.log.step("close tools")
        await super().close_seat(handle)


@dataclass
class Journal(NoTakeOver):
    """Takes over what it was told to."""

    log: Log
    left: list[FrontWork] = field(default_factory=list[FrontWork])
    epochs: list[int] = field(default_factory=list[int])

    async def take_over(self, handle: str, epoch: int, put_first: Callable[[FrontWork], None]) -> None:
        self.log.step("take over journal")
        self.epochs.append(epoch)
        for work in self.left if handle == "ceo" else ():
            put_first(work)


@dataclass
class Turns:
    """Plays every turn: ``rounds`` rounds of ``round_s``, the fence asked before each."""

    log: Log
    rounds: int = 0
    round_s: float = 1.0
    started: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    headrooms: list[int] = field(default_factory=list[int])

    async def run(self, trigger: Trigger, fence: Fence, *_: object) -> TurnOutcome:
        self.started.append(trigger.lead.id)
        self.headrooms.append(trigger.headroom)
        self.log.said.append(f"turn {trigger.lead.id}")
        try:
            for _round in range(self.rounds):
                fence.check()
                await asyncio.sleep(self.round_s)
        except Fenced as ended:
            self.log.said.append(f"{type(ended).__name__} {trigger.lead.id}")
            raise
        self.done.append(trigger.lead.id)
        return TurnOutcome(turn_id=TurnId(f"t-{trigger.lead.id}"), decision=Decision.DONE, finished=True)


class SleepyClock(VirtualClock):
    """Counts the time that the machine slept, which the loop's own clock does not."""

    slept_s = 0.0

    def elapsed_s(self) -> float:
        return super().elapsed_s() + self.slept_s


class Posture(ServingPosture):
    """Serves unless it is told not to."""

    serves = True

    def admits_work(self) -> bool:
        return self.serves


class World:
    """A broker and a store, and the nodes that use them."""

    def __init__(self) -> None:
        self.clock = SleepyClock()
        self.broker = MemoryBroker(self.clock)
        self.buckets = {
            slot.name: MemoryBucket(slot, self.clock) for slot in (LEASES, DUTIES, EPOCHS, POSITIONS, LEDGER)
        }
        self.nodes: list[SmallNode] = []

    def node(self, name: str, *, rounds: int = 0, slots: int = 8, release_wait_s: float | None = 60.0) -> SmallNode:
        made = SmallNode(self, name, len(self.nodes), rounds=rounds, slots=slots, release_wait_s=release_wait_s)
        self.nodes.append(made)
        return made

    async def close(self) -> None:
        for node in self.nodes:
            await node.close()

    async def mail(self, event_id: str, handle: str = "ceo") -> None:
        body = ExternalNotification(integration="operator", agent_handle=handle, body="Hello", reply="engine")
        event = new_event(
            body,
            trace=Trace("a" * 32, "b" * 16),
            now=datetime(2030, 1, 1, tzinfo=UTC),
            ids=SeededIds(1),
            event_id=event_id,
        )
        await self.nodes[0].queue.publish(topics.agent_inbox(handle), event)

    def waiting(self, handle: str = "ceo") -> list[tuple[str, int]]:
        """The inbox's unsettled mail: ids, and how often each was delivered."""
        return [(decode(mail.message.payload).id, mail.deliveries) for mail in self.broker.retained(inbox_of(handle))]

    @property
    def pauses(self) -> SeatPauses:
        return SeatPauses(self.store(POSITIONS.name))

    async def pause(self, *, stop_running: bool = False, handle: str = "ceo") -> None:
        await self.pauses.pause(
            SeatPause(handle=handle, by="operator:ada", at=self.clock.now(), reason="wait", stop_running=stop_running)
        )

    def store(self, name: str) -> MemoryRecordStore:
        return MemoryRecordStore(self.buckets[name])


class SmallNode:
    """One process."""

    def __init__(
        self, world: World, name: str, number: int, *, rounds: int, slots: int, release_wait_s: float | None
    ) -> None:
        clock, ids = world.clock, SeededIds(number)
        self.log = Log()
        self.turns = Turns(self.log, rounds)
        self.journal = Journal(self.log)
        self.queue = Queue(world.broker, node=name)
        self.queue.log = self.log
        self.tools = Tools(environment={}, builtins=[])
        self.tools.log = self.log
        self.stores = {slot.name: world.store(slot.name) for slot in (LEASES, DUTIES, EPOCHS)}
        self.leases = KvLeases(
            leases=self.stores[LEASES.name],
            duties=self.stores[DUTIES.name],
            epochs=self.stores[EPOCHS.name],
            clock=clock,
            ids=ids,
        )
        self.positions = world.store(POSITIONS.name)
        self.ledger = Ledger(world.store(LEDGER.name), clock)
        self.gate = TurnGate(slots)
        self.posture = Posture()
        self.company = source(acme(), {})
        self.admitted, holds = SeatAdmitted(), SeatHolds(self.queue, self._may_start)
        self.pausing = SeatPausing(self.positions, holds, clock)

        def inbox_parts(run_turn: RunTurn) -> SeatInboxParts:
            return SeatInboxParts(
                admission=SeatAdmission(self.host, self.pausing),
                posture=self.posture,
                withheld=self.pausing.withheld,
                ledger=self.ledger,
                gate=self.gate,
                run_turn=run_turn,
                settle=_settled,
                publish=self.queue.publish,
                clock=clock,
                ids=ids,
            )

        self.hooks = SeatRuntime(
            SeatRuntimeParts(
                queue=self.queue,
                tools=self.tools,
                runner=cast("TurnRunner", self.turns),
                company=lambda: self.company,
                inbox_parts=inbox_parts,
                holds=holds,
                pauses=self.pausing,
                admitted=self.admitted,
                may_start=self._may_start,
                release_wait_s=lambda: release_wait_s,
                clock=clock,
                ids=ids,
                journals=self.journal,
            )
        )
        self.host = Host(
            leases=self.leases,
            hooks=self.hooks,
            clock=clock,
            config=HostConfig(owner=f"{name}:{number}", node_id=name, ttl_s=TTL_S),
        )

    def _may_start(self, handle: str) -> int | None:
        return self.host.may_start(handle)

    async def start(self, *handles: str) -> None:
        await self.pausing.start()
        await self.host.start([PlacedSeat(handle) for handle in handles or ("ceo",)])

    async def lease(self) -> Lease | None:
        """The live lease of the ceo's seat, whoever has it."""
        held: list[Lease] = [lease for lease in await self.leases.held("seat") if lease.resource == "seat:ceo"]
        return held[0] if held else None

    def die(self) -> None:
        """As a killed process: it holds what it held, and does nothing any more."""
        self.queue.cut()
        for store in [*self.stores.values(), self.positions]:
            store.link.cut = True

    async def close(self) -> None:
        for store in [*self.stores.values(), self.positions]:
            store.link.cut = False
        await self.host.release_all()
        await self.pausing.close()
        await self.hooks.close()
        await self.leases.close()
        await self.queue.close()
        await self.tools.close()


async def _settled(*_: Any) -> None:  # noqa: ANN401 - whatever was to be settled
    await asyncio.sleep(0)


def _short(subscription: Subscription) -> str:
    return subscription.topic.rsplit(".", 1)[-1]
