"""Mailboxes that nobody works: made, filled, looked at and destroyed beside those of the run."""

from __future__ import annotations

from crewlet import topics
from crewlet.queue import MailboxState, Subscription
from crewlet.testing.simulation.company import Client
from crewlet.testing.simulation.ledger import Ledger

__all__ = ["SideMailboxes"]


class SideMailboxes:
    """What is kept in them, and what the queue tells of all mailboxes."""

    def __init__(self, worked: tuple[Subscription, ...], ledger: Ledger) -> None:
        self._worked = worked
        self._ledger = ledger
        self._candidates = [
            Subscription(worked[0].topic, "side one"),
            Subscription(topics.agent_control("seat0"), topics.control_group("seat0")),
            Subscription(worked[-1].topic, "side.two"),
        ]
        self._kept: dict[Subscription, list[str]] = {}

    def published(self, topic: str, event_id: str) -> None:
        """A new message is on the topic."""
        for mailbox, kept in self._kept.items():
            if mailbox.topic == topic:
                kept.append(event_id)

    async def make(self, client: Client, number: int) -> None:
        """Make one, and one that is there already with it. Raises ``Unavailable``."""
        mailbox = self._candidates[number % len(self._candidates)]
        there = self._stored(mailbox.topic)
        if number % 2:
            await client.queue.ensure_subscription(mailbox)
            await client.queue.ensure_subscription(self._worked[0])
        else:
            await client.queue.ensure_subscriptions([self._worked[0], mailbox])
        if mailbox not in self._kept:
            self._begins(mailbox, there)
        self._compare()

    async def remove(self, client: Client, number: int) -> None:
        """Destroy one, whether it is there or not, from where nobody is attached. Raises ``Unavailable``."""
        mailbox = self._candidates[number % len(self._candidates)]
        await client.queue.delete_subscription(mailbox)
        self._kept.pop(mailbox, None)
        if self._ledger.view.exists(mailbox):
            self._found(f"{mailbox} was destroyed and is there")
        self._compare()

    async def look(self, client: Client, number: int) -> None:
        """Compare what the queue tells with what there is. Raises ``Unavailable``."""
        there = [each for each in (*self._worked, *self._kept) if topics.inbox_handle(each.topic) is not None]
        pattern = there[number % len(there)].topic
        told, wanted = await client.queue.list_subscriptions(pattern), [each for each in there if each.topic == pattern]
        if sorted(told, key=str) != sorted(wanted, key=str):
            self._found(f"under {pattern} {told} are listed, and there are {wanted}")
        if await client.queue.mailbox(Subscription(self._worked[0].topic, "nobody")) is not None:
            self._found("a mailbox is told of that is not there")
        mailbox = there[number % len(there)]
        self._compare_state(client, await client.queue.mailbox(mailbox), mailbox)
        self._compare()

    def _begins(self, mailbox: Subscription, there_before: list[str]) -> None:
        """It keeps what was stored all the while; what was worked meanwhile it may or may not have met."""
        kept = [place.event_id for place in self._ledger.view.places(mailbox)]
        if not {*self._stored(mailbox.topic)} <= {*kept} <= {*there_before}:
            self._found(f"{mailbox} begins with {kept}, and {there_before} were there")
        self._kept[mailbox] = kept

    def _stored(self, topic: str) -> list[str]:
        """What some mailbox of the topic keeps: a new one begins with the first of it."""
        there = {
            (place.sequence, place.event_id)
            for mailbox in (*self._worked, *self._kept)
            if mailbox.topic == topic
            for place in self._ledger.view.places(mailbox)
        }
        return [event_id for _, event_id in sorted(there)]

    def _compare(self) -> None:
        for mailbox in self._worked:
            if not self._ledger.view.exists(mailbox):
                self._found(f"{mailbox} is gone, and nobody destroyed it")
        for mailbox, kept in self._kept.items():
            ids = [place.event_id for place in self._ledger.view.places(mailbox)]
            if ids != kept or not self._ledger.view.exists(mailbox):
                self._found(f"{mailbox} keeps {ids}, and is to keep {kept}")

    def _compare_state(self, client: Client, state: MailboxState | None, mailbox: Subscription) -> None:
        places = self._ledger.view.places(mailbox)
        pending = sum(place.deliveries == 0 for place in places)
        if state is None:
            self._found(f"{mailbox} is there and not told of")
            return
        found = state.pending, state.held, state.oldest, state.attached_here
        wanted = pending, len(places) - pending, self._ledger.view.oldest(mailbox), mailbox in client.attached
        if found != wanted:
            self._found(f"{mailbox}: {found} are told of pending, held, oldest, attached here, not {wanted}")
        if not places and not state.waiting_pulls and self._somebody_waits(mailbox):
            self._found(f"{mailbox}: nobody is told to wait for mail, and somebody does")

    def _somebody_waits(self, mailbox: Subscription) -> bool:
        working = [handling.attached for handling in self._ledger.running]
        return any(
            each.mailbox == mailbox
            and each.is_heard
            and not each.stopped
            and each.changed_at_s < self._ledger.now_s()
            and not self._ledger.may_have_lost(each)
            and each not in working
            for each in self._ledger.attached
        )

    def _found(self, what: str) -> None:
        self._ledger.found("listed", what)
