"""The event queue's contract: durable mailboxes by topic and group, outcomes, verbs, listeners, broadcast (S2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from crewlet.base import limits
from crewlet.events import Event
from crewlet.queue.batches import BatchHandler, BatchOptions, PartitionKey
from crewlet.queue.deliveries import Handler, Subscription
from crewlet.queue.unheard import UnheardListener

__all__ = [
    "Answer",
    "EventQueue",
    "MailboxState",
    "PublishListener",
    "QueueConfig",
    "Responder",
    "StreamHandler",
    "StreamSubscription",
    "nak_backoff_s",
]


PublishListener = Callable[[str, Event], Awaitable[None]]
"""Told of each publish after the broker acknowledged it: topic, and the event as the queue stamped it."""

Responder = Callable[[bytes], Awaitable[bytes]]
"""Answers one ephemeral question. What it raises reaches the asker as a failed answer, never as silence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One node's answer to a scattered question: ``payload``, or ``error`` where it could not answer."""

    node: str
    payload: bytes = b""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxState:
    """What a mailbox retains, and whether anybody works it.

    ``pending`` is mail that nobody has fetched, ``held`` what somebody holds or what waits out a backoff; ``oldest``
    says when the oldest of both was published. ``waiting_pulls`` counts who, anywhere, asks for its mail now.
    """

    subscription: Subscription
    pending: int
    held: int
    oldest: datetime | None
    waiting_pulls: int
    attached_here: bool


StreamHandler = Callable[[str, Event], None]
"""Told of each matching event from now on: topic and event. Must not block."""


class StreamSubscription(Protocol):
    """A live feed of one caller."""

    async def close(self) -> None:
        """End the feed; harmless when repeated."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """The queue's clocks and budgets; the defaults are what ships.

    Of the byte limits, each of one stream and not of all, 0 takes what ships, or less where the broker has less to
    grant; one that is set is what the stream gets, or the process does not start.

    ``ack_waits`` are the mailboxes whose ack clock is another than ``ack_wait_s``: those that no lease guards, where
    what a dead holder had can come back by the clock alone. Read whenever a mailbox is made, repaired or attached.
    """

    ack_wait_s: float = limits.ACK_WAIT_S
    ack_waits: Mapping[Subscription, float] = field(default_factory=dict[Subscription, float])
    max_deliver: int = limits.MAX_DELIVER
    nak_backoff_first_s: float = limits.NAK_BACKOFF_FIRST_S
    nak_backoff_max_s: float = limits.NAK_BACKOFF_MAX_S
    event_retention_s: float = 30 * 24 * 3600.0
    mailbox_max_bytes: int = 0
    event_max_bytes: int = 0
    config_max_bytes: int = 0
    dead_letter_max_bytes: int = 0
    journal_max_bytes: int = 0
    replicas: int = 1

    def ack_wait_of(self, subscription: Subscription) -> float:
        """Seconds after which what a holder fetched and never spoke of again is delivered to somebody else."""
        return self.ack_waits.get(subscription, self.ack_wait_s)


def nak_backoff_s(config: QueueConfig, deliveries: int) -> float:
    """Seconds until a message that failed its ``deliveries``-th delivery (from 1) comes back."""
    exponent = min(max(deliveries - 1, 0), 30)
    return min(config.nak_backoff_first_s * 2.0**exponent, config.nak_backoff_max_s)


class EventQueue(Protocol):
    """Publish and consume events. Every call may raise ``Unavailable``: it may have happened."""

    async def publish(self, topic: str, event: Event) -> Event:
        """Store ``event`` for every subscription of ``topic``; returns the copy that was stamped with this node.

        True afterwards: the broker has acknowledged the message and every publish listener has been awaited.
        A topic that no durable subscription covers drops the event on the mailbox streams (S-138). A repeat with the
        same event id inside the broker's duplicate window is stored once; an event that was :func:`put_back` is another
        message, under the same id. Raises ``PayloadTooLarge``, and
        ``MailboxFull`` where a mailbox stream has no room left: nothing was stored, and nothing that waits gave way.
        """
        ...

    async def publish_live(self, topic: str, event: Event) -> Event:
        """Hand ``event`` to the broker for whoever follows now, and wait for no word on it; returns the stamped copy.

        True afterwards: it is on its way, behind what this client has published and ahead of what it will publish, and
        every publish listener has been awaited. Whether it arrives is promised to nobody: one that the broker refuses
        or never answers for, and one that goes down with the link, is lost, which is counted in the log. A repeat is
        a message of its own.

        Raises ``PayloadTooLarge``; and ``Unavailable``, at once, where it is not on its way: the broker is not there
        for it, or a bounded number of others wait for its word. No listener has heard of it then.
        """
        ...

    async def ensure_subscription(self, subscription: Subscription) -> None:
        """Create the durable mailbox, detached, from the first message on; a no-op where it exists as configured."""
        ...

    async def ensure_subscriptions(self, subscriptions: Collection[Subscription]) -> None:
        """As :meth:`ensure_subscription` for each of many, without a request for each that is there as configured.

        After a failure some exist and some do not; the same call again makes the rest.
        """
        ...

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        """Attach this process: one delivery at a time, the next fetched only after the last was settled.

        Creates the mailbox where missing. Raises ``ValueError`` if this process is attached already.
        """
        ...

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Callable[[], BatchOptions] = BatchOptions,
    ) -> None:
        """Attach this process to whole hauls: one partition after another, each acknowledged after its call (E-057).

        ``options`` is asked before each haul, so that a changed window or cap holds from the next one on. A hold, a
        quiesce, a deferral or a detach during the collection hands the whole haul back, and between two partitions
        the rest of it: one delivery dearer each, whatever is spent becoming a dead letter. Raises ``ValueError`` if
        this process is attached already.
        """
        ...

    async def hold(self, subscription: Subscription, name: str) -> None:
        """Fetch nothing while the hold ``name`` stands; lifting another leaves it in force (E-080).

        May be taken before the attach, which then begins held. A detach drops every hold of the attachment.
        """
        ...

    async def lift(self, subscription: Subscription, name: str) -> None:
        """End the hold ``name``; fetch again once no other stands. A no-op for one that does not."""
        ...

    async def quiesce(self, subscription: Subscription) -> None:
        """Stop fetching, stay attached; a running handler goes on. A no-op when not attached."""
        ...

    async def unquiesce(self, subscription: Subscription) -> None:
        """Fetch again after :meth:`quiesce` or a deferral. A no-op when not attached or not quiesced."""
        ...

    async def wait_idle(self, subscription: Subscription) -> None:
        """Return once no handler of this attachment runs."""
        ...

    async def detach(self, subscription: Subscription) -> None:
        """Close this process's attachment at once; the mailbox, its place and its mail stay.

        Does not wait for a running handler, whose outcome is no longer reported.
        """
        ...

    async def delete_subscription(self, subscription: Subscription) -> None:
        """Destroy the mailbox and the mail it retains, attached here or not."""
        ...

    async def release_held(self, subscription: Subscription) -> None:
        """Give back at once what a dead holder had fetched and never settled, one delivery dearer each.

        Only under the seat's lease, before the attach, and only after a lapse.
        """
        ...

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        """Every durable mailbox whose topic ``pattern`` covers, attached or not, whoever created it (E-028).

        Only those whose recorded pair derives their own name; another is logged as ``jetstream_subscription_unnamed``.
        """
        ...

    async def mailbox(self, subscription: Subscription) -> MailboxState | None:
        """What a mailbox retains, or ``None`` where there is none."""
        ...

    async def serve(self, subject: str, responder: Responder) -> StreamSubscription:
        """Answer ephemeral questions on ``subject`` until closed. Nothing of them is stored."""
        ...

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        """Ask every node that serves ``subject``; returns what came within ``timeout_s``, and who it came from.

        Ends early once ``expected`` answers (if above zero) are there. Who is silent is missing: the caller compares
        with the roster it knows.
        """
        ...

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        """Feed every event that matches ``pattern`` (``*``, ``>``) from now on to ``handler``; acknowledges nothing.

        Raises ``ValueError`` for a pattern that spans namespaces.
        """
        ...

    def add_publish_listener(self, listener: PublishListener) -> Callable[[], None]:
        """Await ``listener`` inside each publish of this process; its failures are logged. Returns what removes it."""
        ...

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        """Await ``listener`` for each message that is buried although no handler speaks for its last delivery.

        That is what a stopped haul hands back before its turn came, what arrives as an attachment stops, and what a
        holder had when it died: of that, one process of the fleet is told. At least once; failures are logged. Of
        what a handler was given and answered for, nobody is told: it was told the headroom. Returns what removes it.
        """
        ...

    async def close(self) -> None:
        """Detach everything and end this client's tasks."""
        ...
