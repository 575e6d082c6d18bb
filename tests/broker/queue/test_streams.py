"""Streams by purpose: what each keeps, how one that is there already is adopted."""

from __future__ import annotations

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream, connect
from crewlet.backends.nats.embedded_broker import EmbeddedBroker
from crewlet.backends.nats.jetstream_types import StreamConfig, ns
from crewlet.backends.nats.streams import Streams, purpose_streams
from crewlet.base import limits
from crewlet.base.errors import StartRefused
from crewlet.queue import QueueConfig, Subscription
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.rig import INBOX, SCALED, Company, Node, event

pytestmark = pytest.mark.slow


async def in_force(node: Node, name: str) -> StreamConfig:
    info = await node.api.stream_info(name)
    assert info is not None
    return info.config


@pytest.mark.spec("E-020", "E-021")
@pytest.mark.parametrize("name", [topics.STREAM_AGENT, topics.STREAM_NOTIFICATIONS])
async def test_mailboxes_keep_mail_while_somebody_owes_an_ack(node: Node, name: str) -> None:
    config = await in_force(node, name)

    assert config.subjects == [topics.stream_subjects(name)]
    assert (config.retention, config.max_age, config.discard) == ("interest", 0, "new")


@pytest.mark.spec("E-022", "E-023", "E-024")
@pytest.mark.parametrize(
    ("name", "age_s", "discard"),
    [
        (topics.STREAM_EVENTS, SCALED.event_retention_s, "old"),
        (topics.STREAM_CONFIG, 3600.0, "old"),
        (topics.STREAM_DLQ, SCALED.event_retention_s, "new"),
        (topics.STREAM_JOURNAL, 7 * 86400.0, "new"),
    ],
)
async def test_records_are_kept_for_their_age(node: Node, name: str, age_s: float, discard: str) -> None:
    config = await in_force(node, name)

    assert config.subjects == [topics.stream_subjects(name)]
    assert (config.retention, config.max_age, config.discard) == ("limits", ns(age_s), discard)


@pytest.mark.spec("E-022")
async def test_events_are_kept_for_thirty_days_as_shipped(company: Company) -> None:
    node = await company.node(config=QueueConfig())

    assert (await in_force(node, topics.STREAM_EVENTS)).max_age == ns(30 * 86400)


@pytest.mark.spec("E-156")
async def test_of_what_was_worked_the_record_of_events_alone_is_kept(node: Node) -> None:
    topic, handlers = topics.event_topic("probe"), [Recorder(), Recorder(), Recorder()]
    read = [INBOX, Subscription(topics.NOTIFICATIONS_INBOUND, "routers"), Subscription(topic, "readers")]
    for subscription, handler in zip(read, handlers, strict=True):
        await node.queue.subscribe(subscription, handler)
        await node.queue.publish(subscription.topic, event("m1"))
        await handler.handled(1)
        await node.queue.wait_idle(subscription)

    async def kept() -> list[int]:
        streams = (topics.STREAM_AGENT, topics.STREAM_NOTIFICATIONS, topics.STREAM_EVENTS)
        return [await node.stored(stream) for stream in streams]

    async def settled() -> bool:
        return await kept() == [0, 0, 1]

    await wait_until(settled, what="mailboxes that are empty")


async def test_a_dead_letter_is_recognised_for_a_day(node: Node) -> None:
    assert (await in_force(node, topics.STREAM_DLQ)).duplicate_window == ns(86400)


@pytest.mark.parametrize("stream", purpose_streams(SCALED, "file"), ids=lambda stream: stream.name)
async def test_every_stream_takes_a_company_of_consumers(node: Node, stream: StreamConfig) -> None:
    assert (await in_force(node, stream.name)).max_consumers == limits.BROKER_MAX_CONSUMERS


@pytest.mark.spec("E-025")
async def test_a_foreign_namespace_gets_mailboxes_on_first_use(node: Node) -> None:
    handler = Recorder()
    await node.queue.subscribe(Subscription("foo.bar", "readers"), handler)
    await node.queue.publish("foo.bar", event("m1"))
    await node.queue.publish("foo.unread", event("m2"))

    await handler.handled(1)

    name = topics.namespace_stream("foo.bar")
    assert name is not None
    assert (await in_force(node, name)).retention == "interest"
    assert handler.ids == ["m1"]


async def test_a_stream_that_differs_is_repaired(broker: EmbeddedBroker) -> None:
    wire = await connect(broker.urls, seed=broker.seed)
    api = JetStream(wire)
    wanted = next(each for each in purpose_streams(SCALED, "file") if each.name == topics.STREAM_EVENTS)
    await api.stream_create(
        StreamConfig(
            name=wanted.name,
            subjects=wanted.subjects,
            storage="file",
            max_age=ns(60),
            max_consumers=10,
        )
    )

    await Streams(api, SCALED, "file").provision()

    info = await api.stream_info(wanted.name)
    await wire.close()
    assert info is not None
    assert (info.config.max_age, info.config.discard) == (wanted.max_age, "old")
    assert info.config.max_consumers == limits.BROKER_MAX_CONSUMERS


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ("retention", {"retention": "limits", "discard": "new"}),
        ("storage", {"storage": "memory"}),
    ],
)
async def test_a_stream_that_cannot_be_repaired_is_refused_by_name(
    broker: EmbeddedBroker, setting: str, changed: dict[str, object]
) -> None:
    wire = await connect(broker.urls, seed=broker.seed)
    api = JetStream(wire)
    settings: dict[str, object] = {
        "retention": "interest",
        "storage": "file",
        "max_consumers": limits.BROKER_MAX_CONSUMERS,
        **changed,
    }
    await api.stream_create(
        StreamConfig(name=topics.STREAM_AGENT, subjects=["crewlet.agent.>"], **settings)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    )

    with pytest.raises(StartRefused, match=f"{topics.STREAM_AGENT}.*{setting}"):
        await Streams(api, SCALED, "file").provision()
    await wire.close()


async def test_a_second_node_adopts_what_the_first_made(company: Company) -> None:
    first = await company.node("first")
    handler = Recorder()
    await first.queue.ensure_subscription(Subscription("crewlet.agent.ada.inbox", "g"))
    await first.queue.publish("crewlet.agent.ada.inbox", event("m1"))

    second = await company.node("second")
    await second.queue.subscribe(Subscription("crewlet.agent.ada.inbox", "g"), handler)

    await handler.handled(1)
