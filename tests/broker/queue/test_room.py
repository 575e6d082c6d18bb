"""How much the streams may hold: a full mailbox refuses by name, records give way, the buckets keep their part."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream
from crewlet.backends.nats.jetstream_types import AccountInfo, AccountLimits, StreamConfig
from crewlet.backends.nats.stream_room import find_room, shipped_room
from crewlet.backends.nats.streams import Streams
from crewlet.base import limits
from crewlet.base.errors import MailboxFull, StartRefused, Unavailable
from crewlet.queue import QueueConfig
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.rig import INBOX, SCALED, Company, Node, event

pytestmark = pytest.mark.slow

SMALL = replace(
    SCALED,
    mailbox_max_bytes=200_000,
    event_max_bytes=200_000,
    config_max_bytes=100_000,
    dead_letter_max_bytes=100_000,
    journal_max_bytes=100_000,
)
EVENTS = topics.event_topic("probe")


async def in_force(node: Node, name: str) -> StreamConfig:
    info = await node.api.stream_info(name)
    assert info is not None
    return info.config


async def fill(node: Node, topic: str, count: int) -> None:
    for number in range(count):
        await node.queue.publish(topic, event(f"{topic}-{number}", text="x" * 10_000))


async def test_a_full_mailbox_stream_refuses_by_name_and_gives_nothing_up(company: Company) -> None:
    node = await company.node(config=SMALL)
    await node.queue.ensure_subscription(INBOX)

    with pytest.raises(MailboxFull) as refused:
        await fill(node, INBOX.topic, 30)

    kept = await node.stored()
    assert (refused.value.topic, refused.value.at_limit) == (INBOX.topic, True)
    assert isinstance(refused.value, Unavailable)
    assert 10 <= kept < 30
    first = await node.api.next_message(topics.STREAM_AGENT, 1, INBOX.topic)
    assert first is not None
    assert first.seq == 1


async def test_a_mailbox_takes_mail_again_once_there_is_room(company: Company) -> None:
    node = await company.node(config=SMALL)
    await node.queue.ensure_subscription(INBOX)
    with pytest.raises(MailboxFull):
        await fill(node, INBOX.topic, 30)
    handler, kept = Recorder(), await node.stored()

    await node.queue.subscribe(INBOX, handler)
    await handler.handled(kept)
    await node.queue.wait_idle(INBOX)
    await node.queue.publish(INBOX.topic, event("again"))

    await handler.handled(kept + 1)


async def test_events_give_up_their_oldest(company: Company) -> None:
    node = await company.node(config=SMALL)

    await fill(node, EVENTS, 30)

    info = await node.api.stream_info(topics.STREAM_EVENTS)
    assert info is not None
    assert info.state.last_seq == 30
    assert info.state.messages < 30


@pytest.mark.parametrize(
    ("name", "size", "discard"),
    [
        (topics.STREAM_AGENT, 200_000, "new"),
        (topics.STREAM_NOTIFICATIONS, 200_000, "new"),
        (topics.STREAM_EVENTS, 200_000, "old"),
        (topics.STREAM_CONFIG, 100_000, "old"),
        (topics.STREAM_DLQ, 100_000, "new"),
        (topics.STREAM_JOURNAL, 100_000, "new"),
    ],
)
async def test_a_configured_size_is_in_force(company: Company, name: str, size: int, discard: str) -> None:
    await company.node()
    node = await company.node(config=SMALL)

    config = await in_force(node, name)

    assert (config.max_bytes, config.discard) == (size, discard)


async def test_every_stream_has_a_limit_as_shipped(node: Node) -> None:
    for name in (
        topics.STREAM_AGENT,
        topics.STREAM_NOTIFICATIONS,
        topics.STREAM_EVENTS,
        topics.STREAM_CONFIG,
        topics.STREAM_DLQ,
        topics.STREAM_JOURNAL,
        topics.STREAM_ADVISORIES,
    ):
        assert (await in_force(node, name)).max_bytes > 0


async def test_a_size_that_nobody_wrote_down_stays_as_it_is(company: Company) -> None:
    await company.node(config=SMALL)

    node = await company.node(config=SCALED)

    assert (await in_force(node, topics.STREAM_AGENT)).max_bytes == SMALL.mailbox_max_bytes


async def test_a_size_that_the_broker_cannot_grant_is_refused_by_name(company: Company) -> None:
    with pytest.raises(StartRefused, match=topics.STREAM_EVENTS) as refused:
        await company.node(config=replace(SCALED, event_max_bytes=10**16))

    assert "stream.event_max_bytes" in refused.value.remedy


async def test_a_size_that_the_broker_cannot_grant_any_more_is_refused_by_name(company: Company) -> None:
    await company.node()

    with pytest.raises(StartRefused, match=topics.STREAM_DLQ) as refused:
        await company.node(config=replace(SCALED, dead_letter_max_bytes=10**16))

    assert "stream.dead_letter_max_bytes" in refused.value.remedy


class Poor(JetStream):
    """An account that was granted only so much."""

    granted = 1_000_000_000

    async def account_info(self) -> AccountInfo:
        return AccountInfo(limits=AccountLimits(max_memory=self.granted, max_storage=self.granted))


async def test_a_small_account_keeps_a_part_for_the_buckets(node: Node) -> None:
    room = await find_room(Poor(node.wire), QueueConfig(), "file")

    assert 0.5 * Poor.granted < room.total <= (1 - limits.BUCKETS_ROOM_FRACTION) * Poor.granted


async def test_a_size_that_is_written_down_stays_where_the_account_is_small(node: Node) -> None:
    config = QueueConfig(event_max_bytes=700_000_000)

    room = await find_room(Poor(node.wire), config, "file")

    assert room.events == config.event_max_bytes
    assert room.total <= (1 - limits.BUCKETS_ROOM_FRACTION) * Poor.granted


async def test_the_copies_of_a_cluster_count_against_the_account(node: Node) -> None:
    room = await find_room(Poor(node.wire), QueueConfig(replicas=3), "file")

    assert 3 * room.total <= (1 - limits.BUCKETS_ROOM_FRACTION) * Poor.granted


async def test_a_server_that_has_less_gets_less_asked_of_it(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EVENT_STREAM_BYTES", 10**15)

    room = await find_room(node.api, QueueConfig(), "file")

    assert 0 < room.events < 10**15
    assert room.total < shipped_room(QueueConfig()).total
    assert "CREWLET_ROOM" not in await node.api.stream_names()


async def test_a_repair_keeps_what_an_operator_set_beside_it(company: Company) -> None:
    node = await company.node()
    await node.api.stream_change(
        topics.STREAM_EVENTS,
        {"max_msgs": 5, "compression": "s2", "republish": {"src": "crewlet.events.>", "dest": "b.>"}},
    )

    await Streams(node.api, SCALED, company.broker.storage).provision()

    body = (await node.wire.request(f"$JS.API.STREAM.INFO.{topics.STREAM_EVENTS}", timeout_s=5)).payload
    config = msgspec.json.decode(body)["config"]
    assert config["compression"] == "s2"
    assert config["republish"] == {"src": "crewlet.events.>", "dest": "b.>"}
    assert (await in_force(node, topics.STREAM_EVENTS)).max_msgs == -1
