"""A listing pays for no removal that the sweep has taken away, however many there ever were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from crewlet.backends.nats import JetStream, open_buckets
from crewlet.backends.nats.wire import Message, Wire
from crewlet.base import limits
from crewlet.base.fence import OpenFence
from crewlet.base.tasks import each_at_once
from crewlet.coordination import CHANNELS, RecordStore, swept_slots
from crewlet.duties import MAINTENANCE, marker_job
from crewlet.testing import SeededIds
from crewlet.testing.brokers import connected_wire, running_broker
from tests.broker.queue.wires import PassedOn

pytestmark = pytest.mark.slow

REMOVALS = 3000


class Noted(PassedOn):
    """Remembers what was asked."""

    def __init__(self, inner: Wire) -> None:
        super().__init__(inner)
        self.asked: list[str] = []

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        self.asked.append(subject)
        return await super().request(subject, payload, headers=headers, timeout_s=timeout_s)

    async def reads_of(self, store: RecordStore) -> tuple[list[str], int]:
        """The keys of a listing, and how many single reads it took."""
        self.asked.clear()
        listed = await store.list("channel.>")
        return [record.key for record in listed], sum("MSG.GET" in subject for subject in self.asked)


@dataclass(frozen=True)
class Later:
    """A clock that is ahead of the machine's."""

    by_s: float

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.by_s)

    def elapsed_s(self) -> float:
        return 0.0


@pytest.mark.spec("C-155")
async def test_a_listing_reads_no_marker_that_is_older_than_three_hours_and_a_tick() -> None:
    async with running_broker(sync_interval_s=60.0) as broker, connected_wire(broker) as connection:
        wire = Noted(connection)
        opened = await open_buckets(JetStream(wire), swept_slots(), storage=broker.storage, ids=SeededIds(1))
        stores: dict[str, RecordStore] = {name: bucket.store for name, bucket in opened.items()}
        channels = stores[CHANNELS.name]

        async def come_and_go(key: str) -> None:
            record = await channels.create(key, b"{}")
            await channels.delete(key, expected=record.revision)

        await channels.create("channel.stays", b"{}")
        await each_at_once([f"channel.c{number}" for number in range(REMOVALS)], come_and_go, at_once=64)
        before = await wire.reads_of(channels)
        await marker_job(stores, Later(limits.MARKER_RETENTION_S - 60)).run(OpenFence())
        too_early = await wire.reads_of(channels)
        await marker_job(stores, Later(limits.MARKER_RETENTION_S + MAINTENANCE.every_s)).run(OpenFence())
        after = await wire.reads_of(channels)

    assert before[0] == too_early[0] == after[0] == ["channel.stays"]
    assert min(before[1], too_early[1]) >= REMOVALS
    assert after[1] == 0
