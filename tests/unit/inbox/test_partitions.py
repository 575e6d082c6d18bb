"""What of a seat's mail belongs together."""

from __future__ import annotations

import pytest

from crewlet.events.types import A2aMessage, A2aRequest, ExternalNotification, TaskAssigned
from crewlet.inbox import conversation_of, partition_of, trigger_of
from crewlet.queue import Delivery, inbox_of, partitions_of
from tests.unit.inbox.inbox_kit import event
from tests.unit.inbox.wakes import SOURCES, body_of, changed, said

ALONE = [
    TaskAssigned(agent_handle="ceo", task="Report"),
    A2aRequest(channel_id="c1", requester="cto", target="ceo", brief="Which?"),
    A2aMessage(channel_id="c1", requester="ceo", responder="cto", brief="?", content="SQLite"),
    ExternalNotification(integration="pigeon", agent_handle="ceo", body="coo"),
]


@pytest.mark.spec("E-069", "E-073")
@pytest.mark.parametrize("body", ALONE, ids=lambda body: body.event_type)
def test_what_names_no_conversation_stands_alone_under_its_events_id(body: TaskAssigned) -> None:
    """As a partition and as an identity: no later event can have that key."""
    assert partition_of(event(body, "e7")) == conversation_of(event(body, "e7")) == "event:e7"


async def test_messages_of_one_conversation_belong_together_and_of_two_do_not() -> None:
    mail = [await said("a", "m1"), await changed("comment", "b", "c1"), await said("c", "m2", at_s=1)]

    batches = partitions_of(inbox_of("ceo"), [Delivery(inbox_of("ceo"), each, 5) for each in mail], partition_of)

    assert [[each.event.id for each in batch.deliveries] for batch in batches] == [["c1"], ["m1", "m2"]]


@pytest.mark.spec("E-076")
@pytest.mark.parametrize(
    ("fields", "conversation"),
    [
        ({"conversation_identity": "chat:D1"}, "chat:D1"),
        ({"partition_key": "chat:D1"}, "event:m1"),
        ({"partition_key": "chat:D1:1", "conversation_identity": "chat:D1"}, "chat:D1"),
    ],
)
async def test_partition_and_identity_are_read_each_from_its_own_field(
    fields: dict[str, str], conversation: str
) -> None:
    said_so = ExternalNotification(integration="chat", agent_handle="ceo", body="x", **fields)  # pyright: ignore[reportArgumentType]

    trigger = trigger_of("ceo", [event(said_so, "m1")], SOURCES, headroom=1)

    assert trigger.conversation_key == conversation


@pytest.mark.spec("E-076", "E-069")
async def test_a_partition_without_an_identity_is_no_conversation_and_merges_nothing() -> None:
    body = body_of(await said("a", "m1"), conversation_identity="")

    assert partition_of(event(body, "m1")) != partition_of(event(body, "m2"))


@pytest.mark.spec("E-071")
async def test_whatever_a_source_says_one_partition_has_one_identity() -> None:
    one, other = await said("a", "m1"), await said("b", "m2")
    torn = event(body_of(other, conversation_identity="chat:D2"), "m2")

    assert partition_of(one) != partition_of(torn)
