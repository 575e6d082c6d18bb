"""What is there: mailboxes by pattern, and what one retains."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from crewlet import topics
from crewlet.backends.nats import Wire
from crewlet.backends.nats.jetstream_types import ConsumerConfig, StreamConfig
from crewlet.backends.nats.wire import Message
from crewlet.queue import Nak, QueueConfig, Subscription
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from tests.broker.queue.rig import INBOX, Company, Node, event, in_batches, seats
from tests.broker.queue.wires import PassedOn

pytestmark = pytest.mark.slow

ODD = Subscription("crewlet.agent.grace.control", "agent grace / control")


@pytest.mark.spec("E-028", "E-029")
async def test_a_mailbox_is_listed_as_the_pair_it_was_made_for_whoever_made_it(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    await first.queue.ensure_subscription(ODD)
    await first.queue.subscribe(INBOX, Recorder())

    assert await second.queue.list_subscriptions("crewlet.agent.>") == [INBOX, ODD]
    assert await second.queue.list_subscriptions("crewlet.agent.*.control") == [ODD]
    assert await second.queue.list_subscriptions("crewlet.notifications.>") == []
    assert await second.queue.list_subscriptions(">") == [INBOX, ODD]


@pytest.mark.spec("E-028")
async def test_a_company_of_mailboxes_is_listed_whole(node: Node) -> None:
    company = seats(600)
    await in_batches([lambda each=each: node.queue.ensure_subscription(each) for each in company])

    listed = await node.queue.list_subscriptions("crewlet.agent.*.inbox")

    assert len(listed) == 600
    assert set(listed) == set(company)


@pytest.mark.spec("E-029", "E-030")
@pytest.mark.parametrize("metadata", [{}, {"topic": INBOX.topic, "group": "somebody else's"}])
async def test_a_mailbox_whose_record_does_not_derive_its_name_is_left_out_and_said(
    node: Node, metadata: dict[str, str]
) -> None:
    name = topics.durable_name(INBOX.topic, INBOX.group)
    tampered = ConsumerConfig(durable_name=name, ack_policy="explicit", filter_subject=INBOX.topic, metadata=metadata)
    await node.api.consumer_create(topics.STREAM_AGENT, tampered)

    with capture_logs() as logs:
        listed = await node.queue.list_subscriptions("crewlet.agent.>")

    said = [line for line in logs if line["event"] == "jetstream_subscription_unnamed"]
    assert listed == []
    assert [line["consumer"] for line in said] == [name]


@pytest.mark.spec("E-031")
async def test_only_our_own_streams_are_searched(node: Node) -> None:
    topic, group = "theirs.inbox", "readers"
    await node.api.stream_create(StreamConfig(name="THEIRS", subjects=["theirs.>"], storage="memory"))
    foreign = ConsumerConfig(
        durable_name=topics.durable_name(topic, group),
        ack_policy="explicit",
        metadata={"topic": topic, "group": group},
    )
    await node.api.consumer_create("THEIRS", foreign)

    assert await node.queue.list_subscriptions("theirs.>") == []
    assert await node.queue.list_subscriptions(">") == []


async def test_a_live_feed_is_no_mailbox(node: Node) -> None:
    await node.queue.subscribe_stream("crewlet.events.>", lambda _topic, _event: None)

    with capture_logs() as logs:
        listed = await node.queue.list_subscriptions(">")

    assert listed == []
    assert not [line for line in logs if line["event"] == "jetstream_subscription_unnamed"]


async def test_a_mailbox_says_what_it_retains(company: Company) -> None:
    node, other = await company.node("node"), await company.node("other")
    busy = Busy()
    await node.queue.subscribe(INBOX, busy)
    await node.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()
    await node.queue.publish(INBOX.topic, event("m2"))

    async def heard() -> bool:
        state = await node.queue.mailbox(INBOX)
        return state is not None and state.pending == 1

    await wait_until(heard, what="a mailbox that has heard of its mail")
    here, there = await node.queue.mailbox(INBOX), await other.queue.mailbox(INBOX)

    first = await node.api.message(topics.STREAM_AGENT, 1)
    assert first is not None
    assert here is not None
    assert there is not None
    assert (here.pending, here.held, here.waiting_pulls, here.attached_here) == (1, 1, 0, True)
    assert (there.pending, there.held, there.attached_here) == (1, 1, False)
    assert here.oldest == first.time
    busy.release.set()


async def test_an_empty_mailbox_has_no_oldest_and_somebody_who_waits(node: Node) -> None:
    handler = Recorder()
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))
    await handler.handled(1)
    await node.queue.wait_idle(INBOX)

    state = await node.queue.mailbox(INBOX)

    assert state is not None
    assert (state.pending, state.held, state.oldest) == (0, 0, None)


async def test_what_waits_out_a_backoff_counts_as_held(company: Company) -> None:
    node = await company.node(config=QueueConfig(nak_backoff_first_s=30.0))
    handler = Recorder(Nak())
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))
    await handler.handled(1)
    await node.queue.wait_idle(INBOX)

    state = await node.queue.mailbox(INBOX)

    assert state is not None
    assert (state.pending, state.held) == (0, 1)


async def test_there_is_nothing_to_say_of_a_mailbox_that_is_not_there(node: Node) -> None:
    assert await node.queue.mailbox(INBOX) is None


class DeletesMeanwhile(PassedOn):
    """Deletes the first mailboxes of a listing as soon as its first page was read."""

    def __init__(self, inner: Wire, doomed: list[str]) -> None:
        super().__init__(inner)
        self._doomed = doomed

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        answer = await super().request(subject, payload, headers=headers, timeout_s=timeout_s)
        if "CONSUMER.LIST" in subject:
            doomed, self._doomed = self._doomed, []
            for name in doomed:
                await super().request(f"$JS.API.CONSUMER.DELETE.{topics.STREAM_AGENT}.{name}", timeout_s=timeout_s)
        return answer


@pytest.mark.spec("E-028")
async def test_a_deletion_during_a_listing_hides_no_other_mailbox(company: Company) -> None:
    node = await company.node("node")
    everybody = seats(300)
    await in_batches([lambda each=each: node.queue.ensure_subscription(each) for each in everybody])
    in_order = sorted(await node.api.consumer_names(topics.STREAM_AGENT))
    doomed = in_order[:3]

    reader = await company.node("reader", through=lambda wire: DeletesMeanwhile(wire, doomed))
    listed = await reader.queue.list_subscriptions("crewlet.agent.>")

    kept = {each for each in everybody if topics.durable_name(each.topic, each.group) not in doomed}
    assert kept <= set(listed)
    assert len(listed) == len(set(listed))
