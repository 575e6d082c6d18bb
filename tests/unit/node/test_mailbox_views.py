"""The company's mailboxes as an operator sees them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from crewlet import topics
from crewlet.node.mailbox_views import mailbox_view, mailbox_views
from crewlet.node.mailboxes import control_of, inbox_of
from crewlet.notify import inbound_subscription
from crewlet.queue import MailboxState, Subscription

NOW = datetime(2026, 3, 1, tzinfo=UTC)
STATE = MailboxState(subscription=inbox_of("ceo"), pending=0, held=0, oldest=None, waiting_pulls=0, attached_here=False)


class Broker:
    """Lists what it holds; what is in ``retired`` is gone by the time it is asked for."""

    def __init__(self, *held: Subscription, retired: frozenset[Subscription] = frozenset()) -> None:
        self._held = held
        self._retired = retired

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        assert topics.namespace(pattern) is not None
        return [each for each in self._held if topics.matches(pattern, each.topic)]

    async def mailbox(self, subscription: Subscription) -> MailboxState | None:
        return None if subscription in self._retired else replace(STATE, subscription=subscription)


async def shown(broker: Broker, handle: str = "") -> list[Subscription]:
    views = await mailbox_views(broker, handle)  # pyright: ignore[reportArgumentType] - the two verbs that it uses
    return [Subscription(view.topic, view.group) for view in views]


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (STATE, "nobody"),
        (replace(STATE, attached_here=True), "here"),
        (replace(STATE, attached_here=True, waiting_pulls=1), "here"),
        (replace(STATE, waiting_pulls=1), "elsewhere"),
        (replace(STATE, waiting_pulls=1, held=1), "elsewhere"),
        (replace(STATE, held=1), "unknown"),
        (replace(STATE, pending=5), "nobody"),
    ],
)
def test_who_is_attached_is_said_as_far_as_it_is_known(state: MailboxState, word: str) -> None:
    assert mailbox_view(state).attached == word


def test_a_view_carries_the_counts_the_age_and_the_seat() -> None:
    view = mailbox_view(replace(STATE, pending=3, held=2, oldest=NOW))

    assert (view.pending, view.held, view.oldest, view.seat) == (3, 2, NOW, "ceo")


async def test_all_mailboxes_are_shown_by_topic() -> None:
    broker = Broker(inbound_subscription(), inbox_of("cto"), inbox_of("ceo"), control_of("ceo"))

    assert await shown(broker) == [control_of("ceo"), inbox_of("ceo"), inbox_of("cto"), inbound_subscription()]


async def test_one_seats_mailboxes_are_shown_alone() -> None:
    broker = Broker(inbound_subscription(), inbox_of("cto"), inbox_of("ceo"), control_of("ceo"))

    assert await shown(broker, "ceo") == [control_of("ceo"), inbox_of("ceo")]


async def test_a_mailbox_that_was_retired_meanwhile_is_left_out() -> None:
    broker = Broker(inbox_of("ceo"), inbox_of("cto"), retired=frozenset({inbox_of("cto")}))

    assert await shown(broker) == [inbox_of("ceo")]
