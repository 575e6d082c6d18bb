"""How a chat's messages belong together, as any chat's payload shows where a message stands."""

from __future__ import annotations

import pytest

from crewlet.base.clock import SystemClock
from crewlet.base.trace import fresh_trace
from crewlet.events import Event, new_event
from crewlet.events.types import ExternalNotification, RawWebhook
from crewlet.notify import (
    ChatPlace,
    Notice,
    NotificationService,
    OperatorSource,
    PlainPrompt,
    Seat,
    Sources,
    chat_identity,
    chat_partition,
    inbound_subscription,
)
from crewlet.queue import Delivery
from crewlet.testing import SeededIds
from crewlet.testing.played_sources import PlayedBoard, PlayedChat, board_change, chat_message


class Everybody:
    """A company in which every handle is an agent's."""

    def resolve(self, identity: str) -> Seat | None:
        return Seat(identity, "", is_agent=True)


DIRECT = ChatPlace(channel="D1", ts="1719.002", channel_type="im")
GROUP = ChatPlace(channel="G5", ts="1719.002", channel_type="mpim")
UNSAID = ChatPlace(channel="D1", ts="1719.002")
DIRECT_THREAD = ChatPlace(channel="D1", ts="1719.002", thread="1718.001", channel_type="im")
SHARED = ChatPlace(channel="C9", ts="1719.002", channel_type="channel")
SHARED_THREAD = ChatPlace(channel="C9", ts="1719.002", thread="1718.001", channel_type="channel")
ROOT = ChatPlace(channel="C9", ts="1718.001", channel_type="channel")


@pytest.mark.spec("E-068")
@pytest.mark.parametrize(
    ("place", "key"),
    [
        (DIRECT, "D1"),
        (GROUP, "G5"),
        (UNSAID, "D1"),
        (DIRECT_THREAD, "D1:1718.001"),
        (SHARED, "C9:1719.002"),
        (SHARED_THREAD, "C9:1718.001"),
        (ROOT, "C9:1718.001"),
    ],
)
def test_the_top_of_a_direct_conversation_is_one_partition_and_each_thread_another(place: ChatPlace, key: str) -> None:
    """A channel's top-level message shares the key of its later replies, and of nothing else."""
    assert chat_partition(place) == key


@pytest.mark.spec("E-068")
def test_a_channel_type_that_is_said_outweighs_the_channels_name() -> None:
    assert chat_partition(ChatPlace(channel="DEVS", ts="1", channel_type="channel")) == "DEVS:1"


@pytest.mark.spec("E-070")
@pytest.mark.parametrize("place", [DIRECT, DIRECT_THREAD, UNSAID, GROUP])
def test_a_direct_conversation_is_one_however_it_is_threaded(place: ChatPlace) -> None:
    assert chat_identity(place) == place.channel


@pytest.mark.spec("E-070")
@pytest.mark.parametrize("place", [SHARED, SHARED_THREAD, ROOT])
def test_in_a_shared_channel_the_thread_is_the_conversation(place: ChatPlace) -> None:
    assert chat_identity(place) == chat_partition(place)


@pytest.mark.spec("E-071")
@pytest.mark.parametrize("place", [DIRECT, GROUP, UNSAID, DIRECT_THREAD, SHARED, SHARED_THREAD, ROOT])
def test_a_partition_is_its_conversation_or_a_finer_cut_of_it(place: ChatPlace) -> None:
    partition, identity = chat_partition(place), chat_identity(place)

    assert partition == identity or partition.startswith(f"{identity}:")


@pytest.mark.spec("E-070")
def test_an_issue_is_what_is_merged_and_the_conversation() -> None:
    notice = _notice(board_change("P-7", "comment", to="ceo", by="ann", text="Hi"))
    prompt = PlayedBoard().prompt

    assert prompt.partition_key(notice) == prompt.conversation_identity(notice) == "P-7"


@pytest.mark.spec("E-067")
@pytest.mark.parametrize(
    ("raw", "partition", "identity"),
    [
        (board_change("P-7", "comment", to="ceo", by="ann", text="Hi"), "board:P-7", "board:P-7"),
        (chat_message("D1", "5.1", to="ceo", by="ann", text="Hi"), "chat:D1", "chat:D1"),
        (chat_message("D1", "5.2", to="ceo", by="ann", text="Hi", thread="4.1"), "chat:D1:4.1", "chat:D1"),
        (chat_message("C9", "5.3", to="ceo", by="ann", text="Hi"), "chat:C9:5.3", "chat:C9:5.3"),
        (
            RawWebhook(integration="operator", recipient="ceo", sender="ann", body="Hi"),
            "operator:raw-1",
            "operator:ann:ceo",
        ),
    ],
    ids=["issue", "direct", "direct thread", "channel", "operator"],
)
async def test_a_wake_carries_its_sources_keys_under_its_sources_name(
    raw: RawWebhook, partition: str, identity: str
) -> None:
    published: list[Event] = []

    async def publish(topic: str, event: Event) -> Event:
        published.append(event)
        return event

    ids, clock = SeededIds(1), SystemClock()
    delivered = new_event(raw, trace=fresh_trace(ids), now=clock.now(), ids=ids, event_id="raw-1")
    sources = Sources([OperatorSource(), PlayedBoard(), PlayedChat()])
    service = NotificationService(publish=publish, directory=Everybody(), sources=sources, clock=clock, ids=ids)

    await service.handle(Delivery(inbound_subscription(), delivered, 24))

    (wake,) = published
    assert isinstance(wake.data, ExternalNotification)
    assert (wake.data.partition_key, wake.data.conversation_identity) == (partition, identity)


def test_who_is_spoken_to_is_owed_an_answer_where_the_message_came_from() -> None:
    direct = _notice(chat_message("D1", "1", to="ceo", by="ann", text="Hi"))
    shared = _notice(chat_message("C9", "1", to="ceo", by="ann", text="Hi"))
    prompt = PlayedChat().prompt

    assert [prompt.reply(each) for each in (direct, shared)] == ["tool", "none"]


def test_a_source_that_this_node_does_not_know_merges_nothing() -> None:
    notice = _notice(chat_message("D1", "1", to="ceo", by="ann", text="Hi"))

    prompt = Sources([OperatorSource()]).prompt("chat")

    assert isinstance(prompt, PlainPrompt)
    assert (prompt.partition_key(notice), prompt.reply(notice), prompt.digest_body(notice)) == ("", "none", "Hi")


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="operator"):
        Sources([OperatorSource(), OperatorSource()])


def _notice(raw: RawWebhook) -> Notice:
    return Notice(
        recipient=raw.recipient, notification_type="message", sender=raw.sender, body=raw.body, metadata=raw.metadata
    )
