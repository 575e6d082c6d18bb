"""Every seat's mailboxes exist, whoever is to serve them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from crewlet.base.errors import Unavailable
from crewlet.node.mailboxes import control_of, ensure_mailboxes, inbox_of, reflect_of
from crewlet.notify import inbound_subscription
from crewlet.queue import Subscription


class Broker:
    """Keeps the mailboxes that were asked for; that of ``broken`` cannot be had."""

    def __init__(self, broken: str = "") -> None:
        self.made: list[Subscription] = []
        self._broken = broken

    async def ensure_subscriptions(self, subscriptions: Collection[Subscription]) -> None:
        if any(subscription.topic == self._broken for subscription in subscriptions):
            raise Unavailable("the broker is away")
        self.made += subscriptions


async def ensured(broker: Broker, *handles: str) -> None:
    await ensure_mailboxes(broker, handles)  # pyright: ignore[reportArgumentType] - the one verb that it uses


async def test_a_seat_has_an_inbox_a_control_and_a_reflect_mailbox_and_the_company_one_for_what_arrives() -> None:
    broker = Broker()

    await ensured(broker, "ceo", "cto")

    assert set(broker.made) == {
        inbound_subscription(),
        *(mailbox(handle) for mailbox in (inbox_of, control_of, reflect_of) for handle in ("ceo", "cto")),
    }
    assert len(broker.made) == 7


def test_the_groups_of_a_seats_mailboxes_are_named_after_it() -> None:
    assert [mailbox("ceo").group for mailbox in (inbox_of, control_of, reflect_of)] == [
        "agent-ceo",
        "agent-ceo-control",
        "agent-ceo-reflect",
    ]


async def test_a_mailbox_that_cannot_be_had_is_not_passed_over() -> None:
    with pytest.raises(Unavailable):
        await ensured(Broker(broken=inbox_of("ceo").topic), "ceo", "cto")
