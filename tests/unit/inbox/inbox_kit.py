"""What the tests of a seat's inbox share: a node that holds the seat, and partitions as the queue hands them over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.fence import Fence
from crewlet.base.ids import TurnId
from crewlet.base.trace import Trace
from crewlet.coordination import Ledger
from crewlet.events import Body, Event, new_event
from crewlet.events.types import ExternalNotification, NotificationsCoalesced, TurnTriggerSkipped
from crewlet.inbox import (
    Decision,
    NoRefusal,
    Refusal,
    SeatInbox,
    SeatInboxParts,
    Trigger,
    TurnGate,
    TurnJournal,
    TurnOutcome,
    partition_of,
)
from crewlet.notify import Sources
from crewlet.queue import Batch, Delivery, EventQueue, Outcome, inbox_of
from crewlet.testing import SeededIds, VirtualClock

__all__ = ["BROKE", "BROKE_OUTSIDE", "DONE", "HELLO", "Node", "batch_of", "event"]

HELLO = ExternalNotification(integration="operator", agent_handle="ceo", body="Hello", reply="engine")
DONE = TurnOutcome(turn_id=TurnId("t1"), decision=Decision.DONE, finished=True, artifact="Hi")
BROKE = TurnOutcome(
    turn_id=TurnId("t1"),
    decision=Decision.FAILED,
    finished=False,
    error="no model answered",
    error_kind="llm_unavailable",
)
BROKE_OUTSIDE = replace(BROKE, reached_outside=True)


def event(body: Body = HELLO, event_id: str = "e1") -> Event:
    trace = Trace("a" * 32, "b" * 16)
    return new_event(body, trace=trace, now=datetime(2030, 1, 1, tzinfo=UTC), ids=SeededIds(1), event_id=event_id)


class Grant:
    """The fence of one epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def check(self) -> None:
        pass


@dataclass
class Node:
    """A node that holds the ceo's seat, over a ledger that it shares with its peers. ``does`` plays the turn."""

    bucket: MemoryBucket
    does: TurnOutcome | Exception | Callable[[], Awaitable[TurnOutcome]] = DONE
    epoch: int | None = 7
    serves: bool = True
    settling: Exception | None = None
    publishing: Exception | None = None
    queue: EventQueue | None = None
    gate: TurnGate = field(default_factory=lambda: TurnGate(1))
    sources: Sources = field(default_factory=Sources)
    holds: Refusal = field(default_factory=NoRefusal)
    park: Refusal = field(default_factory=NoRefusal)
    steps: list[str] = field(default_factory=list[str])
    triggers: list[Trigger] = field(default_factory=list[Trigger])
    fences: list[Fence] = field(default_factory=list[Fence])
    published: list[tuple[str, Event]] = field(default_factory=list[tuple[str, Event]])

    def __post_init__(self) -> None:
        clock = VirtualClock()
        self.ledger = Ledger(MemoryRecordStore(self.bucket), clock)
        self.inbox = SeatInbox(
            "ceo",
            SeatInboxParts(
                admission=self,
                posture=self,
                ledger=self,
                gate=self.gate,
                run_turn=self._run_turn,
                settle=self._settle,
                publish=self._publish,
                sources=self.sources,
                holds=self.holds,
                park=self.park,
                clock=clock,
                ids=SeededIds(2),
            ),
        )

    async def gets(self, delivered: Event | None = None, *, headroom: int = 5) -> Outcome:
        return await self.inbox.handle(batch_of(delivered or event(), headroom=headroom))

    async def gets_all(self, *delivered: Event, headroom: int = 5, spent: tuple[str, ...] = ()) -> Outcome:
        return await self.inbox.handle(batch_of(*delivered, headroom=headroom, spent=spent))

    @property
    def skips(self) -> list[TurnTriggerSkipped]:
        return [said.data for _, said in self.published if isinstance(said.data, TurnTriggerSkipped)]

    @property
    def merges(self) -> list[NotificationsCoalesced]:
        return [said.data for _, said in self.published if isinstance(said.data, NotificationsCoalesced)]

    def may_start(self, handle: str) -> int | None:
        assert handle == "ceo"
        return self.epoch

    def fence(self, handle: str, epoch: int) -> Fence:
        assert handle == "ceo"
        return Grant(epoch)

    @property
    def name(self) -> str:
        return "serve" if self.serves else "shed"

    def admits_work(self) -> bool:
        return self.serves

    async def worked(self, handle: str, ids: list[str]) -> frozenset[str]:
        return await self.ledger.worked(handle, ids)

    async def record(self, handle: str, ids: list[str], *, turn_id: str, outcome: str) -> None:
        self.steps.append("record")
        await self.ledger.record(handle, ids, turn_id=turn_id, outcome=outcome)

    async def _run_turn(self, trigger: Trigger, fence: Fence, _: TurnJournal) -> TurnOutcome:
        self.steps.append("run")
        await trigger.read_thread()
        self.triggers.append(trigger)
        self.fences.append(fence)
        if isinstance(self.does, Exception):
            raise self.does
        return self.does if isinstance(self.does, TurnOutcome) else await self.does()

    async def _settle(self, trigger: Trigger, outcome: TurnOutcome) -> None:
        assert trigger == (self.triggers or [trigger])[-1]
        self.steps.append(f"settle {outcome.decision}")
        if self.settling is not None:
            raise self.settling

    async def _publish(self, topic: str, said: Event) -> Event:
        if self.publishing is not None:
            raise self.publishing
        self.published.append((topic, said))
        if self.queue is not None:
            await self.queue.publish(topic, said)
        return said


def batch_of(*events: Event, headroom: int = 5, spent: tuple[str, ...] = ()) -> Batch:
    """One partition of the ceo's inbox; ``spent`` are the ids of those that are on their last delivery."""
    deliveries = [
        Delivery(inbox_of("ceo"), event, 0 if event.id in spent else headroom)
        for event in sorted(events, key=lambda each: each.timestamp)
    ]
    return Batch(inbox_of("ceo"), partition_of(events[0]), tuple(deliveries))
