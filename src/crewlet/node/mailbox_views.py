"""The company's mailboxes as an operator sees them: what waits where, since when, and who works it."""

from __future__ import annotations

from crewlet import topics
from crewlet.base import limits
from crewlet.base.tasks import each_at_once
from crewlet.node.face import MailboxView
from crewlet.queue import EventQueue, MailboxState, Subscription

__all__ = ["mailbox_view", "mailbox_views"]

_STREAMS = (topics.STREAM_NOTIFICATIONS, topics.STREAM_AGENT, topics.STREAM_EVENTS, topics.STREAM_CONFIG)


async def mailbox_views(queue: EventQueue, handle: str = "") -> tuple[MailboxView, ...]:
    """Every mailbox of the company, or of one seat, by topic and group, whoever made it. Raises ``Unavailable``.

    Raises ``ValueError`` for a handle that no topic can hold.
    """
    patterns = [topics.agent_topics(handle)] if handle else [topics.stream_subjects(stream) for stream in _STREAMS]
    found = [subscription for pattern in patterns for subscription in await queue.list_subscriptions(pattern)]
    states: list[MailboxState] = []

    async def read(subscription: Subscription) -> None:
        # One that was retired since it was listed is not shown.
        if (state := await queue.mailbox(subscription)) is not None:
            states.append(state)

    await each_at_once(found, read, at_once=limits.MAILBOXES_READ_AT_ONCE)
    return tuple(mailbox_view(state) for state in sorted(states, key=_place))


def mailbox_view(state: MailboxState) -> MailboxView:
    """One mailbox. Pure."""
    topic = state.subscription.topic
    return MailboxView(
        topic=topic,
        group=state.subscription.group,
        seat=topics.seat_handle(topic) or "",
        pending=state.pending,
        held=state.held,
        oldest=state.oldest,
        attached=_attached(state),
    )


def _attached(state: MailboxState) -> str:
    if state.attached_here:
        return "here"
    if state.waiting_pulls:
        return "elsewhere"
    # Whoever works on a delivery asks for none meanwhile, and one that died in the middle of it looks the same.
    return "unknown" if state.held else "nobody"


def _place(state: MailboxState) -> tuple[str, str]:
    return state.subscription.topic, state.subscription.group
