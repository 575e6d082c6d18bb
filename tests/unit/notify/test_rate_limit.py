"""The valve before the inboxes: what a seat is let have in a second, and what becomes of the rest."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.trace import Trace
from crewlet.coordination import RATE, RateValve
from crewlet.events import Event, new_event
from crewlet.events.types import NotificationSkipped, RawWebhook
from crewlet.notify import NotificationService, OperatorSource, Seat, SkipReason, Sources, inbound_subscription
from crewlet.queue import Delivery
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time


class Router:
    """One node of a fleet that routes; the count is the fleet's. ``a_second`` is what the company says just now."""

    def __init__(self, bucket: MemoryBucket, a_second: int, seed: int = 1) -> None:
        self.a_second = a_second
        self.published: list[Event] = []
        self._clock = VirtualClock()
        self._ids = SeededIds(seed)
        self._service = NotificationService(
            publish=self._publish,
            directory=self,
            sources=Sources([OperatorSource()]),
            clock=self._clock,
            ids=self._ids,
            valve=RateValve(MemoryRecordStore(bucket), Random(seed)),
            a_second_max=lambda: self.a_second,
        )

    def resolve(self, identity: str) -> Seat | None:
        return Seat(identity, "", is_agent=identity != "ann")

    async def gets(self, *recipients: str) -> None:
        """A message for each of these, at once."""
        for recipient in recipients:
            raw = RawWebhook(integration="operator", recipient=recipient, sender="bob", body="hi")
            event = new_event(raw, trace=Trace("a" * 32, "b" * 16), now=self._clock.now(), ids=self._ids)
            await self._service.handle(Delivery(inbound_subscription(), event, 24))

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.published]

    async def _publish(self, topic: str, event: Event) -> Event:
        await asyncio.sleep(0)
        self.published.append(event)
        return event


PASSED, SKIPPED = "external_notification", "notification_skipped"


@pytest.fixture
async def bucket() -> MemoryBucket:
    return MemoryBucket(RATE, VirtualClock())


@pytest.mark.spec("E-109")
async def test_what_is_above_the_limit_is_dropped_with_a_phrase_of_its_own(bucket: MemoryBucket) -> None:
    router = Router(bucket, a_second=2)

    await router.gets("ceo", "ceo", "ceo")

    dropped = router.published[-1].data
    assert router.types == [PASSED, PASSED, SKIPPED]
    assert isinstance(dropped, NotificationSkipped)
    assert (dropped.reason, dropped.recipient, dropped.sender) == (SkipReason.RATE, "ceo", "bob")


@pytest.mark.spec("E-109")
async def test_each_seat_and_each_second_has_a_count_of_its_own(bucket: MemoryBucket) -> None:
    router = Router(bucket, a_second=1)

    await router.gets("ceo", "cto", "ceo")
    await asyncio.sleep(1.1)
    await router.gets("ceo")

    assert router.types == [PASSED, PASSED, SKIPPED, PASSED]


@pytest.mark.spec("E-109")
async def test_all_nodes_that_route_count_together(bucket: MemoryBucket) -> None:
    one, other = Router(bucket, a_second=1), Router(bucket, a_second=1, seed=2)

    await one.gets("ceo")
    await other.gets("ceo")

    assert (one.types, other.types) == ([PASSED], [SKIPPED])


@pytest.mark.spec("E-109", "E-110")
async def test_without_a_limit_none_is_dropped_and_the_store_is_not_asked(bucket: MemoryBucket) -> None:
    router = Router(bucket, a_second=0)
    bucket.cut = True

    await router.gets(*["ceo"] * 300)

    assert router.types == [PASSED] * 300


async def test_a_changed_limit_holds_from_the_next_notification_on(bucket: MemoryBucket) -> None:
    router = Router(bucket, a_second=0)
    await router.gets("ceo", "ceo")

    router.a_second = 1
    await router.gets("ceo", "ceo")

    assert router.types == [PASSED, PASSED, PASSED, SKIPPED]


@pytest.mark.spec("E-109")
async def test_what_cannot_be_counted_is_not_let_through(bucket: MemoryBucket) -> None:
    router = Router(bucket, a_second=5)
    bucket.cut = True

    with capture_logs() as logs:
        await router.gets("ceo")

    assert router.types == [SKIPPED]
    assert "rate_valve_unreadable" in [entry["event"] for entry in logs]


async def test_what_goes_nowhere_is_not_counted(bucket: MemoryBucket) -> None:
    router = Router(bucket, a_second=1)

    await router.gets("ann", "ann")

    assert [event.data.reason for event in router.published if isinstance(event.data, NotificationSkipped)] == [
        SkipReason.HUMAN,
        SkipReason.HUMAN,
    ]
