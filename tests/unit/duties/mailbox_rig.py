"""Sweeps of mailboxes over twins of everything that they touch, each of it within reach of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from structlog.testing import capture_logs

from crewlet.backends.memory import (
    MemoryBroker,
    MemoryBucket,
    MemoryLog,
    MemoryLogStream,
    MemoryQueue,
    MemoryRecordStore,
)
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.fence import OpenFence
from crewlet.coordination import (
    LEASE_PROTOCOL,
    MAILBOXES,
    SANDBOX_RUNS,
    Lease,
    Mailboxes,
    RunStatus,
    SandboxRun,
    SandboxRuns,
    SeatMailbox,
    Stored,
    seat_resource,
)
from crewlet.duties import MailboxSweep, RetirementParts
from crewlet.events import Event
from crewlet.queue import Subscription, inbox_of, mailboxes_of
from crewlet.testing import SeededIds
from tests.unit.coordination.lease_rig import TTL_S, Process, Rig

__all__ = ["DAY_S", "TICK_S", "Boxes", "Company", "Queue", "Roster", "Sweeper", "elapsed_s"]

DAY_S, TICK_S = 24 * 3600.0, 15 * 60.0


def elapsed_s() -> float:
    return asyncio.get_running_loop().time()


class Roster:
    """The company's agent seats, as a node may say; ``unknown`` where it cannot."""

    def __init__(self, *handles: str) -> None:
        self.handles = set(handles)
        self.unknown = False

    async def agent_handles(self) -> frozenset[str]:
        if self.unknown:
            raise Unavailable("this node has not applied the current revision")
        return frozenset(self.handles)


class Queue(MemoryQueue):
    """A client that does something before each delete, and keeps what it deleted."""

    before_delete: Callable[[Subscription], Awaitable[None]] | None = None
    deleted: tuple[Subscription, ...] = ()
    lists = True

    async def delete_subscription(self, subscription: Subscription) -> None:
        if self.before_delete is not None:
            await self.before_delete(subscription)
        await super().delete_subscription(subscription)
        self.deleted = (*self.deleted, subscription)

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        if not self.lists:
            raise Unavailable("no listing")
        return await super().list_subscriptions(pattern)


class Boxes:
    """What ends runs: keeps whose it ended; those of ``out_of_reach`` it cannot."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.out_of_reach: set[str] = set()

    async def end(self, run: SandboxRun) -> None:
        if run.turn_id in self.out_of_reach:
            raise CrewletError(f"the box of {run.turn_id} does not answer")
        self.ended.append(run.turn_id)


@dataclass
class Sweeper:
    """One node's sweep."""

    process: Process
    queue: Queue
    mailboxes: Mailboxes
    links: dict[str, MemoryRecordStore]
    sweep: MailboxSweep

    async def tick(self) -> list[Mapping[str, Any]]:
        """One tick; returns the lines of its log. Raises what the tick raises."""
        with capture_logs() as logs:
            await self.sweep.run(OpenFence())
        return [line for line in logs if str(line["event"]).startswith("seat_mailbox")]

    async def failed_tick(self) -> tuple[str, list[str]]:
        """A tick that could not do all its work: why, and what it said meanwhile."""
        with capture_logs() as logs:
            try:
                await self.sweep.run(OpenFence())
            except CrewletError as error:
                said = [str(line["event"]) for line in logs if str(line["event"]).startswith("seat_mailbox")]
                return str(error), said
        raise AssertionError("the tick did not fail")


@dataclass
class Company:
    """The broker, the buckets and the leases, and any number of sweeps over them."""

    rig: Rig = field(default_factory=Rig)
    roster: Roster = field(default_factory=lambda: Roster("ceo"))

    def __post_init__(self) -> None:
        self.broker = MemoryBroker(self.rig.clock)
        self.journal = MemoryLogStream(self.rig.clock)
        self.buckets = {slot.name: MemoryBucket(slot, self.rig.clock) for slot in (MAILBOXES, SANDBOX_RUNS)}
        self.queue = Queue(self.broker, node="outside")
        self.registry = Mailboxes(MemoryRecordStore(self.buckets[MAILBOXES.name]))
        self.runs = SandboxRuns(MemoryRecordStore(self.buckets[SANDBOX_RUNS.name]))

    def sweeper(self, name: str = "a", *, boxes: Boxes | None = None, protocol: int = LEASE_PROTOCOL) -> Sweeper:
        process = self.rig.process(name, protocol=protocol)
        links = {slot: MemoryRecordStore(bucket) for slot, bucket in self.buckets.items()}
        queue = Queue(self.broker, node=name)
        mailboxes = Mailboxes(links[MAILBOXES.name])
        parts = RetirementParts(
            leases=process.leases,
            mailboxes=mailboxes,
            runs=SandboxRuns(links[SANDBOX_RUNS.name]),
            queue=queue,
            log=MemoryLog(self.journal),
            clock=self.rig.clock,
            ids=SeededIds(sum(map(ord, name))),
            owner=process.owner,
            node_id=name,
            ttl_s=TTL_S,
            ender=boxes,
        )
        return Sweeper(process, queue, mailboxes, links, MailboxSweep(self.roster, parts))

    async def had(self, handle: str, *, mail: int = 1) -> None:
        """A seat with its mailboxes and some mail, recorded."""
        await self.registry.register(handle)
        await self.queue.ensure_subscriptions(mailboxes_of(handle))
        for number in range(mail):
            await self.write_to(handle, f"{handle}-{number}")

    async def write_to(self, handle: str, event_id: str) -> None:
        at = datetime(2030, 1, 1, tzinfo=UTC)
        await self.queue.publish(inbox_of(handle).topic, Event(id=event_id, type="probe", timestamp=at, payload={}))

    async def gone_for_a_day(self, handle: str, sweeper: Sweeper, *, mail: int = 1) -> None:
        """The seat was removed, a tick has seen it, and its day is over."""
        await self.had(handle, mail=mail)
        await sweeper.tick()
        await asyncio.sleep(DAY_S)

    async def run(self, handle: str, turn_id: str, status: RunStatus = RunStatus.RUNNING) -> None:
        """A detached run that the seat left behind."""
        at = self.rig.clock.now()
        await self.runs.open(
            SandboxRun(
                turn_id=turn_id,
                launch_id=f"launch-{turn_id}",
                handle=handle,
                status=status,
                owner="old:1",
                owner_epoch=0,
                cell="cell",
                started_at=at,
                updated_at=at,
            )
        )

    async def record(self, handle: str) -> SeatMailbox | None:
        found = await self.registry.get(handle)
        return None if found is None else found.record

    async def stored(self, handle: str) -> Stored[SeatMailbox]:
        found = await self.registry.get(handle)
        assert found is not None
        return found

    def mailboxes_left(self, handle: str) -> set[Subscription]:
        return {each for each in self.broker.mailboxes() if each in mailboxes_of(handle)}

    def mail_of(self, handle: str) -> int:
        return len(self.broker.retained(inbox_of(handle)))

    async def claimed(self, handle: str, process: Process) -> Lease:
        lease = await process.leases.claim(seat_resource(handle), owner=process.owner, ttl_s=TTL_S)
        assert isinstance(lease, Lease), lease
        return lease

    async def close(self) -> None:
        await self.queue.close()
        await self.rig.stack.aclose()
