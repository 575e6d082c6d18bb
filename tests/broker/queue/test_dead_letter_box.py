"""What was given up can be looked at, sent again under its own event id, and dropped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from crewlet import topics
from crewlet.backends.nats import DeadLetterBox, JetStream, Wire
from crewlet.backends.nats.queue_dead_letters import GROUP_HEADER, TOPIC_HEADER
from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.clock import SystemClock
from crewlet.base.errors import MailboxFull, Unavailable
from crewlet.queue import DeadLetter, Nak, RedriveOutcome, Subscription
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.rig import INBOX, SCALED, Company, Node, event

pytestmark = pytest.mark.slow

OTHER = Subscription(topics.agent_inbox("bob"), topics.inbox_group("bob"))


async def buried(node: Node, *ids: str, mailbox: Subscription = INBOX) -> list[DeadLetter]:
    """One after the other, each given up after its last delivery; what the box then holds of the mailbox."""
    box = DeadLetterBox(node.api)
    await node.queue.subscribe(mailbox, Recorder(*[Nak("no such tool")] * (4 * len(ids))))
    for event_id in ids:
        await node.queue.publish(mailbox.topic, event(event_id))

    async def all_there() -> bool:
        page = await box.page(limit=100, pattern=mailbox.topic)
        return len(page.letters) == len(ids) and await node.stored() == 0

    await wait_until(all_there, what="the dead letters")
    await node.queue.detach(mailbox)
    return list((await box.page(limit=100, pattern=mailbox.topic)).letters)


async def left(node: Node, text: str, mailbox: Subscription = INBOX) -> str:
    """A letter without the wait for its deliveries; its id."""
    headers = {TOPIC_HEADER: mailbox.topic, GROUP_HEADER: mailbox.group}
    subject = topics.dead_letter(mailbox.topic, mailbox.group)
    return str((await node.api.publish(subject, text.encode(), headers=headers)).seq)


class BreakingWire:
    """A link that drops the answer, and the effect, of requests to subjects that begin with ``broken``."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.broken = "nothing"

    def __getattr__(self, name: str) -> object:
        return getattr(self._wire, name)

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        if subject.startswith(self.broken):
            raise Unavailable("the link broke")
        return await self._wire.request(subject, payload, headers=headers, timeout_s=timeout_s)


async def test_a_letter_tells_the_mailbox_the_event_the_deliveries_and_the_reason(node: Node) -> None:
    before = SystemClock().now()
    (letter,) = await buried(node, "m1")

    assert letter.event is not None
    assert (letter.event.id, letter.topic, letter.group) == ("m1", INBOX.topic, INBOX.group)
    assert (letter.stream, letter.stream_seq, letter.deliveries) == (topics.STREAM_AGENT, 1, 4)
    assert letter.reason == "failed on delivery 4 of 4: no such tool"
    assert letter.size_bytes == len(letter.payload) > 0
    assert before - timedelta(seconds=1) <= letter.at <= SystemClock().now()
    assert await DeadLetterBox(node.api).get(letter.id) == letter


async def test_bytes_that_are_no_event_are_a_letter_all_the_same(node: Node) -> None:
    letter = await DeadLetterBox(node.api).get(await left(node, "not json"))

    assert letter is not None
    assert (letter.event, letter.payload) == (None, b"not json")


async def test_pages_go_from_the_newest_to_the_oldest_and_miss_none(node: Node) -> None:
    box = DeadLetterBox(node.api)
    ids = [await left(node, f"letter {number}") for number in range(11)]
    await box.drop(ids[4])

    seen: list[str] = []
    before: str | None = ""
    while before is not None:
        page = await box.page(limit=3, before=before)
        seen += [letter.id for letter in page.letters]
        before = page.next

    assert seen == [each for each in reversed(ids) if each != ids[4]]


async def test_a_page_is_narrowed_by_topic(node: Node) -> None:
    box = DeadLetterBox(node.api)
    await left(node, "ada's")
    bobs = await left(node, "bob's", OTHER)

    page = await box.page(limit=10, pattern=topics.agent_topics("bob"))

    assert [letter.id for letter in page.letters] == [bobs]


async def test_a_search_looks_at_a_bounded_number_and_goes_on(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEAD_LETTERS_SCANNED_MAX", 5)
    box = DeadLetterBox(node.api)
    wanted = await left(node, "bob's", OTHER)
    for number in range(7):
        await left(node, f"ada's {number}")

    first = await box.page(limit=10, pattern=OTHER.topic)
    assert first.next is not None
    second = await box.page(limit=10, pattern=OTHER.topic, before=first.next)

    assert (first.letters, [letter.id for letter in second.letters], second.next) == ((), [wanted], None)


async def test_a_page_of_large_letters_is_short(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEAD_LETTER_PAGE_MAX_BYTES", 10)
    for _ in range(3):
        await left(node, "123456")

    page = await DeadLetterBox(node.api).page(limit=10)

    assert (len(page.letters), page.next) == (2, page.letters[-1].id)


async def test_an_empty_box_has_an_empty_last_page(node: Node) -> None:
    page = await DeadLetterBox(node.api).page(limit=10)

    assert (page.letters, page.next) == ((), None)


@pytest.mark.parametrize("before", ["x", "-1", "0", "9" * 30])
async def test_a_place_that_no_page_gave_out_is_refused(node: Node, before: str) -> None:
    with pytest.raises(ValueError, match="not a `next`"):
        await DeadLetterBox(node.api).page(limit=10, before=before)


@pytest.mark.parametrize("letter_id", ["x", "0", "77", "9" * 30, ""])
async def test_a_letter_that_is_not_there_is_neither_read_nor_sent_nor_dropped(node: Node, letter_id: str) -> None:
    box = DeadLetterBox(node.api)

    assert await box.get(letter_id) is None
    assert (await box.redrive(letter_id)).outcome is RedriveOutcome.GONE
    assert await box.drop(letter_id) is False


async def test_a_letter_is_worked_again_under_its_events_own_id_with_a_whole_budget(node: Node) -> None:
    (letter,) = await buried(node, "m1")
    box = DeadLetterBox(node.api)

    redriven = await box.redrive(letter.id)
    handler = Recorder()
    await node.queue.subscribe(INBOX, handler)
    await handler.handled(1)

    assert (redriven.outcome, redriven.letter) == (RedriveOutcome.REDRIVEN, letter)
    assert (handler.ids, handler.headrooms) == (["m1"], [3])
    assert handler.deliveries[0].event == letter.event
    assert (await box.page(limit=10)).letters == ()


async def test_a_letter_that_fails_again_is_a_letter_again(node: Node) -> None:
    (letter,) = await buried(node, "m1")
    box = DeadLetterBox(node.api)

    await box.redrive(letter.id)
    await node.queue.subscribe(INBOX, Recorder(*[Nak("still none")] * 4))

    async def again() -> bool:
        return len((await box.page(limit=10)).letters) == 1

    await wait_until(again, what="the letter of the second burial")
    (second,) = (await box.page(limit=10)).letters
    assert second.event == letter.event
    assert (second.id != letter.id, second.reason) == (True, "failed on delivery 4 of 4: still none")


async def test_a_letter_whose_mailbox_is_gone_stays(node: Node) -> None:
    (letter,) = await buried(node, "m1")
    box = DeadLetterBox(node.api)
    await node.queue.delete_subscription(INBOX)

    redriven = await box.redrive(letter.id)

    assert (redriven.outcome, redriven.letter) == (RedriveOutcome.MAILBOX_GONE, letter)
    assert await box.get(letter.id) == letter
    assert await node.stored() == 0


async def test_a_letter_that_names_no_mailbox_stays(node: Node) -> None:
    sent = await node.api.publish("dlq.of.somebody.else", b"{}")
    box = DeadLetterBox(node.api)

    redriven = await box.redrive(str(sent.seq))

    assert redriven.outcome is RedriveOutcome.MAILBOX_GONE
    assert await box.get(str(sent.seq)) is not None


async def test_a_mailbox_made_anew_in_between_does_not_cost_the_letter(node: Node) -> None:
    (letter,) = await buried(node, "m1")

    class Renewing(JetStream):
        async def publish(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            await node.queue.delete_subscription(INBOX)
            sent = await super().publish(*args, **kwargs)  # type: ignore[arg-type]
            await node.queue.ensure_subscription(INBOX)
            return sent

    redriven = await DeadLetterBox(Renewing(node.wire)).redrive(letter.id)

    assert redriven.outcome is RedriveOutcome.MAILBOX_GONE
    assert await DeadLetterBox(node.api).get(letter.id) == letter


async def test_a_death_between_the_sending_and_the_removal_leaves_one_message(company: Company) -> None:
    node = await company.node()
    (letter,) = await buried(node, "m1")
    wire = BreakingWire(node.wire)
    box = DeadLetterBox(JetStream(wire))  # pyright: ignore[reportArgumentType] - the rest is the wire's own
    wire.broken = "$JS.API.STREAM.MSG.DELETE"

    with pytest.raises(Unavailable):
        await box.redrive(letter.id)
    assert await box.get(letter.id) == letter
    wire.broken = "nothing"
    await box.redrive(letter.id)

    assert await node.stored() == 1
    assert await box.get(letter.id) is None


async def test_a_link_that_breaks_before_the_sending_leaves_the_letter(company: Company) -> None:
    node = await company.node()
    (letter,) = await buried(node, "m1")
    wire = BreakingWire(node.wire)
    box = DeadLetterBox(JetStream(wire))  # pyright: ignore[reportArgumentType] - the rest is the wire's own
    wire.broken = INBOX.topic

    with pytest.raises(Unavailable):
        await box.redrive(letter.id)

    assert await DeadLetterBox(node.api).get(letter.id) == letter


async def test_a_letter_for_which_there_is_no_room_stays(company: Company) -> None:
    node = await company.node(config=replace(SCALED, mailbox_max_bytes=200_000))
    box = DeadLetterBox(node.api)
    await node.queue.ensure_subscription(INBOX)
    letter_id = await left(node, "y" * 10_000)
    with contextlib.suppress(MailboxFull):
        for number in range(30):
            await node.queue.publish(INBOX.topic, event(f"m{number}", text="x" * 10_000))

    with pytest.raises(MailboxFull) as refused:
        await box.redrive(letter_id)

    assert refused.value.at_limit
    assert await box.get(letter_id) is not None


async def test_a_dropped_letter_is_gone_and_no_other(node: Node) -> None:
    box = DeadLetterBox(node.api)
    kept, dropped = await left(node, "kept"), await left(node, "dropped")

    assert await box.drop(dropped) is True
    assert await box.drop(dropped) is False
    assert [letter.id for letter in (await box.page(limit=10)).letters] == [kept]


async def test_an_unreachable_box_is_no_empty_box(company: Company) -> None:
    node = await company.node()
    await left(node, "there")
    await node.vanish()
    box = DeadLetterBox(node.api)

    for ask in (box.page(limit=10), box.get("1"), box.redrive("1"), box.drop("1")):
        with pytest.raises(Unavailable):
            async with asyncio.timeout(20):
                await ask
