"""From a raw delivery to the wake on a seat's inbox, or to the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from crewlet import topics
from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.base.trace import Trace
from crewlet.events import Body, Event, encode, new_event
from crewlet.events.types import ExternalNotification, NotificationSkipped, OrgStarted, RawWebhook
from crewlet.notify import NotificationService, OperatorSource, Seat, SkipReason, Sources, inbound_subscription, wake_id
from crewlet.queue import Ack, Delivery
from crewlet.testing import SeededIds

_NOW = datetime(2026, 3, 1, tzinfo=UTC)


class _Clock:
    def now(self) -> datetime:
        return _NOW

    def elapsed_s(self) -> float:
        return 0.0


@dataclass
class _World:
    """A company of seats, and everything that was published."""

    seats: dict[str, Seat]
    published: list[tuple[str, Event]] = field(default_factory=list[tuple[str, Event]])
    failing: Exception | None = None

    def resolve(self, identity: str) -> Seat | None:
        return self.seats.get(identity)

    async def publish(self, topic: str, event: Event) -> Event:
        if self.failing is not None and isinstance(event.data, ExternalNotification):
            raise self.failing
        self.published.append((topic, event))
        return event

    async def deliver(self, body: Body, *, headroom: int = 24) -> Event:
        raw = new_event(body, trace=Trace("a" * 32, "b" * 16), now=_NOW, ids=SeededIds(7))
        service = NotificationService(
            publish=self.publish, directory=self, sources=Sources([OperatorSource()]), clock=_Clock(), ids=SeededIds(1)
        )
        outcome = await service.handle(Delivery(inbound_subscription(), raw, headroom))
        assert outcome == Ack()
        return raw

    @property
    def skipped(self) -> list[NotificationSkipped]:
        return [event.data for _, event in self.published if isinstance(event.data, NotificationSkipped)]


@pytest.fixture
def world() -> _World:
    return _World({"ceo": Seat("ceo", "agent-1", is_agent=True), "ann": Seat("ann", "", is_agent=False)})


def _message(recipient: str = "ceo", body: str = "What first?", integration: str = "operator") -> RawWebhook:
    return RawWebhook(integration=integration, recipient=recipient, sender="operator:ann", body=body)


@pytest.mark.spec("E-049")
async def test_a_message_becomes_a_wake_on_the_seats_inbox(world: _World) -> None:
    """The wake goes straight to the inbox subject, names the seat and says that the engine owes the answer."""
    raw = await world.deliver(_message())

    ((topic, wake),) = world.published
    assert topic == topics.agent_inbox("ceo")
    assert isinstance(wake.data, ExternalNotification)
    assert (wake.data.agent_handle, wake.data.agent_id, wake.data.reply) == ("ceo", "agent-1", "engine")
    assert wake.data.body == "What first?"
    assert wake.id == wake_id(raw.id, "ceo")


@pytest.mark.spec("E-185")
async def test_the_wake_stands_under_the_span_that_caused_it(world: _World) -> None:
    """It is in the delivery's trace, in a span of its own below it."""
    raw = await world.deliver(_message())

    ((_, wake),) = world.published
    assert (wake.trace_id, wake.parent_span_id) == (raw.trace_id, raw.span_id)
    assert wake.span_id != raw.span_id


async def test_a_redelivered_message_becomes_the_same_wake(world: _World) -> None:
    """The inbox can tell that it is the same by the wake's id."""
    await world.deliver(_message())
    await world.deliver(_message())

    first, second = (event.id for _, event in world.published)
    assert first == second


@pytest.mark.spec("E-051")
async def test_the_company_is_asked_anew_for_each_delivery(world: _World) -> None:
    """A seat that became a person's between two deliveries gets no second wake."""
    await world.deliver(_message())
    world.seats["ceo"] = Seat("ceo", "", is_agent=False)

    await world.deliver(_message())

    assert [event.type for _, event in world.published] == ["external_notification", "notification_skipped"]


@pytest.mark.spec("E-055", "E-056")
async def test_a_person_is_skipped(world: _World) -> None:
    """A person has no inbox here; the skip is recorded with its reason."""
    await world.deliver(_message(recipient="ann"))

    assert [skip.reason for skip in world.skipped] == [SkipReason.HUMAN]
    assert len(world.published) == 1


@pytest.mark.spec("E-187")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (_message(recipient="nobody"), SkipReason.NO_SEAT),
        (_message(integration="pigeon"), SkipReason.NO_SOURCE),
        (_message(body="  "), SkipReason.REFUSED),
        (OrgStarted(company="Acme"), SkipReason.UNREADABLE),
    ],
)
async def test_what_reaches_nobody_says_why(world: _World, body: Body, reason: SkipReason) -> None:
    """Each drop has one of the fixed phrases; what the parser said stands beside it."""
    await world.deliver(body)

    assert [skip.reason for skip in world.skipped] == [reason]
    assert bool(world.skipped[0].detail) == (reason in (SkipReason.REFUSED, SkipReason.UNREADABLE))


async def test_a_wake_carries_a_long_message_once(world: _World) -> None:
    """Twice, it could be larger than the delivery that the broker took: accepted, and never routed."""
    body = "What first? " * 100_000

    await world.deliver(_message(body=body))

    ((_, wake),) = world.published
    assert len(encode(wake)) < 1.01 * len(body)


async def test_a_wake_that_no_inbox_takes_is_skipped_at_once_and_said(world: _World) -> None:
    """It would be no smaller on any further delivery."""
    world.failing = PayloadTooLarge("crewlet.agent.ceo.inbox", size=2, limit=1)

    await world.deliver(_message())

    assert [skip.reason for skip in world.skipped] == [SkipReason.TOO_LARGE]


async def test_a_failure_comes_back_unsaid_until_the_last_delivery(world: _World) -> None:
    world.failing = Unavailable("the broker is away")
    with pytest.raises(Unavailable):
        await world.deliver(_message(), headroom=1)
    before = world.skipped

    with pytest.raises(Unavailable):
        await world.deliver(_message(), headroom=0)

    assert before == []
    assert [(skip.reason, skip.detail) for skip in world.skipped] == [(SkipReason.SPENT, "the broker is away")]
