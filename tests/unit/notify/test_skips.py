"""Each way in which a delivery reaches nobody, and the one event that says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.base.trace import Trace
from crewlet.events import Body, Category, Event, category_of, new_event
from crewlet.events.types import ExternalNotification, NotificationSkipped, OrgStarted, RawWebhook
from crewlet.notify import NotificationService, OperatorSource, Seat, SkipReason, Sources, inbound_subscription
from crewlet.queue import Delivery
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def message(recipient: str = "ceo", text: str = "What first?", integration: str = "operator") -> RawWebhook:
    return RawWebhook(integration=integration, recipient=recipient, sender="operator:ann", body=text)


@dataclass
class World:
    """The ceo, an agent; Ann, a person; a valve that may be shut, and a broker that may take no wake."""

    shut: bool = False
    refuses: Exception | None = None
    published: list[Event] = field(default_factory=list[Event])

    def resolve(self, identity: str) -> Seat | None:
        seats = {"ceo": Seat("ceo", "agent-1", is_agent=True), "ann": Seat("ann", "", is_agent=False)}
        return seats.get(identity)

    async def admits(self, handle: str, *, cap: int) -> bool:
        return not self.shut

    async def publish(self, topic: str, event: Event) -> Event:
        if self.refuses is not None and isinstance(event.data, ExternalNotification):
            raise self.refuses
        self.published.append(event)
        return event

    async def gets(self, body: Body, *, headroom: int = 24) -> None:
        clock, ids = VirtualClock(), SeededIds(1)
        service = NotificationService(
            publish=self.publish,
            directory=self,
            sources=Sources([OperatorSource()]),
            clock=clock,
            ids=ids,
            valve=self,
            a_second_max=lambda: 1,
        )
        raw = new_event(body, trace=Trace("a" * 32, "b" * 16), now=NOW, ids=ids)
        await service.handle(Delivery(inbound_subscription(), raw, headroom))


WAYS: dict[SkipReason, tuple[World, Body]] = {
    SkipReason.UNREADABLE: (World(), OrgStarted(company="Acme")),
    SkipReason.NO_SOURCE: (World(), message(integration="pigeon")),
    SkipReason.REFUSED: (World(), message(text="  ")),
    SkipReason.NO_SEAT: (World(), message("nobody")),
    SkipReason.HUMAN: (World(), message("ann")),
    SkipReason.RATE: (World(shut=True), message()),
    SkipReason.TOO_LARGE: (World(refuses=PayloadTooLarge("inbox", size=2, limit=1)), message()),
}


@pytest.mark.spec("E-186")
@pytest.mark.parametrize("reason", WAYS)
async def test_a_dropped_delivery_is_one_event_with_the_reason_in_the_deliverys_trace(reason: SkipReason) -> None:
    world, body = WAYS[reason]

    await world.gets(body)

    (said,) = world.published
    assert isinstance(said.data, NotificationSkipped)
    assert (said.data.reason, category_of(said.type)) == (reason, Category.NOTIFICATION)
    assert (said.trace_id, said.parent_span_id) == ("a" * 32, "b" * 16)


@pytest.mark.spec("E-186")
async def test_a_delivery_that_is_never_tried_again_is_dropped_aloud_too() -> None:
    world = World(refuses=Unavailable("the broker is away"))

    with pytest.raises(Unavailable):
        await world.gets(message(), headroom=0)

    assert [event.data.reason for event in world.published if isinstance(event.data, NotificationSkipped)] == [
        SkipReason.SPENT
    ]


@pytest.mark.spec("E-186")
def test_there_is_no_other_reason() -> None:
    assert {*WAYS, SkipReason.SPENT} == {*SkipReason}
