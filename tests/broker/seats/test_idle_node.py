"""What a node is sent while every seat of a large company is held elsewhere, and renewed all the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from crewlet import topics
from crewlet.backends.nats import Connection, JetStream, open_bucket
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.coordination import KvLeases, Lease
from crewlet.coordination.lease_record import LeaseRecord
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.seats import SWEEP, Host, HostConfig, PlacedSeat, ReleaseMode
from crewlet.testing.brokers import connected_wire, running_broker
from tests.broker.queue.wires import PassedOn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

SEATS = 2001
SWEEP_S = 0.5
SWEEPS = 4
MESSAGES_MAX = 10


class Counting(PassedOn):
    """Counts what comes in and what goes out."""

    def __init__(self, inner: Wire) -> None:
        super().__init__(inner)
        self.messages = 0

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        self.messages += 2
        return await super().request(subject, payload, headers=headers, timeout_s=timeout_s)

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.messages += 1
        await super().publish(subject, payload, reply=reply, headers=headers)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        def counted(message: Message) -> None:
            self.messages += 1
            on_message(message)

        return await super().subscribe(subject, counted)


class NothingBehind:
    """Seats with nothing to establish."""

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        pass

    def on_established(self, handle: str) -> None:
        pass

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        pass

    async def on_unproven(self, handle: str) -> None:
        pass

    async def on_proven(self, handle: str) -> None:
        pass


@dataclass
class Holder:
    """A node that holds every seat: what its leases say is written without its running."""

    api: JetStream
    leases: KvLeases

    async def begin(self) -> None:
        said: dict[str, Any] = {"roles": ["seats"], "labels": {}, "seats_held": SEATS}
        await self.leases.claim("node:holder", owner="holder:1", ttl_s=45.0, preferred="holder", data=said)
        await self.renew_all()

    async def renew_all(self) -> None:
        for first in range(0, SEATS, 100):
            await asyncio.gather(*(self._renew(number) for number in range(first, min(first + 100, SEATS))))

    async def keep_renewing(self) -> None:
        while True:
            await self.renew_all()

    async def _renew(self, number: int) -> None:
        said = LeaseRecord(resource=f"seat:s{number}", owner="holder:1", ttl_s=45.0, epoch=1, protocol=4)
        subject = topics.bucket_subject(topics.bucket(LEASES.name), f"seat.s{number}")
        await self.api.publish(subject, encode_record(said))


async def leases_over(wire: Wire, stack: AsyncExitStack) -> tuple[JetStream, KvLeases]:
    api, clock, ids = JetStream(wire), SystemClock(), RandomIds()
    stores = [
        (await open_bucket(api, slot, storage="file", ids=ids, clock=clock)).store for slot in (LEASES, DUTIES, EPOCHS)
    ]
    leases = KvLeases(leases=stores[0], duties=stores[1], epochs=stores[2], clock=clock, ids=ids)
    stack.push_async_callback(leases.close)
    return api, leases


@pytest.fixture
async def wires() -> AsyncIterator[tuple[Connection, Connection]]:
    async with (
        running_broker(sync_interval_s=60.0) as broker,
        connected_wire(broker, name="holder") as one,
        connected_wire(broker, name="idle") as other,
    ):
        yield one, other


@pytest.mark.spec("S-208")
async def test_an_idle_node_in_a_full_fleet_is_no_party_to_its_renewals(wires: tuple[Connection, Connection]) -> None:
    seen: list[int] = []
    counting = Counting(wires[1])
    async with AsyncExitStack() as stack:
        holder = Holder(*await leases_over(wires[0], stack))
        await holder.begin()
        _api, leases = await leases_over(counting, stack)
        swept = asyncio.Semaphore(0)

        def beat(loop: str) -> None:
            if loop == SWEEP:
                seen.append(counting.messages)
                swept.release()

        host = Host(
            leases=leases,
            hooks=NothingBehind(),
            clock=SystemClock(),
            config=HostConfig(owner="idle:1", node_id="idle", sweep_every_s=SWEEP_S),
            beat=beat,
        )
        async with asyncio.timeout(30), asyncio.TaskGroup() as renewing:
            renewals = renewing.create_task(holder.keep_renewing())
            await host.start([PlacedSeat(f"s{number}") for number in range(SEATS)])
            for _ in range(SWEEPS + 1):
                await swept.acquire()
            renewals.cancel()
        held = host.held()
        await host.release_all()

    each = [after - before for before, after in pairwise(seen)]
    assert held == ()
    assert len(each) >= SWEEPS
    assert max(each) <= MESSAGES_MAX, each
