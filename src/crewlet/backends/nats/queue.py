"""The event queue on JetStream: the contract's verbs over streams, mailboxes, attachments and feeds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace

import structlog

from crewlet import topics
from crewlet.backends.nats.consumer_mailboxes import Mailboxes
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import Storage
from crewlet.backends.nats.pull_requests import PullTiming
from crewlet.backends.nats.pull_silence import SilenceWatch
from crewlet.backends.nats.queue_attachment import Attachment, AttachmentParts
from crewlet.backends.nats.queue_attachments import Attachments
from crewlet.backends.nats.queue_batch import BatchAttachment
from crewlet.backends.nats.queue_dead_letters import DeadLetters
from crewlet.backends.nats.queue_deaf_watch import DeafWatch
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.backends.nats.queue_live_feed import LiveFeed
from crewlet.backends.nats.queue_orphans import ORPHANS, OrphanAttachment
from crewlet.backends.nats.queue_publisher import Publisher
from crewlet.backends.nats.queue_questions import Questions
from crewlet.backends.nats.queue_settlement import Settlement
from crewlet.backends.nats.queue_single import SingleAttachment
from crewlet.backends.nats.streams import Streams
from crewlet.backends.nats.wire import Wire
from crewlet.base import limits
from crewlet.base.errors import CrewletError, StartRefused, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import Event
from crewlet.queue import (
    Answer,
    BatchHandler,
    BatchOptions,
    EventQueue,
    Handler,
    MailboxState,
    PartitionKey,
    PublishListener,
    QueueConfig,
    Responder,
    StreamHandler,
    StreamSubscription,
    Subscription,
    UnheardListener,
    UnheardListeners,
)

__all__ = ["JetStreamQueue"]

_log = structlog.get_logger(__name__)


class JetStreamQueue(EventQueue):
    """One process's client of the company's queue. :meth:`start` comes first, :meth:`close` last.

    ``on_stranded`` is told when an attachment that waits for mail finds deliveries held by nobody it knows of: a link
    or a process took them down with it. Whoever holds the seat's lease may then call :meth:`release_held`, which
    an attached holder may do as well; without that they come back when the ack clock runs out.

    ``takes_as_found``: streams that exist are others' business, and none of their settings is changed or refused.
    """

    def __init__(
        self,
        wire: Wire,
        api: JetStream,
        *,
        node: str,
        config: QueueConfig | None = None,
        storage: Storage = "file",
        on_stranded: Callable[[Subscription], None] | None = None,
        timing: PullTiming | None = None,
        takes_as_found: bool = False,
    ) -> None:
        self._wire = wire
        self._api = api
        self._config = config or QueueConfig()
        self._on_stranded = on_stranded
        self._tasks = Tasks("queue")
        self._link = LinkWatch(wire)
        self._streams = Streams(api, self._config, storage, takes_as_found=takes_as_found)
        self._mailboxes = Mailboxes(api, self._streams, self._config)
        self._whole = asyncio.Event()
        self._whole.set()
        self._publisher = Publisher(api, self._streams, self._link, node, self._tasks, self._whole)
        self._orphans: OrphanAttachment | None = None
        self._questions = Questions(wire, node, self._tasks)
        self._known: set[Subscription] = set()
        self._attachments = Attachments(self._mailboxes)
        self._dead_letters = DeadLetters(api, self._link)
        self._unheard = UnheardListeners()
        self._timing = timing or PullTiming()
        self._silence = SilenceWatch(self._timing.silence_max_s)
        self._parts = AttachmentParts(
            wire=wire,
            link=self._link,
            mailboxes=self._mailboxes,
            settlement=Settlement(api, self._link, self._dead_letters, self._config, self._unheard),
            config=self._config,
            tasks=self._tasks,
            ended=self._forget,
            stranded=self._tell_stranded,
            timing=self._timing,
            silence=self._silence,
        )
        self._feeds: set[LiveFeed] = set()
        self._link_returned = asyncio.Event()
        self._forgets_all = storage == "memory"
        self._unwatch = wire.on_reconnected(self._on_link_returned)

    async def start(self) -> None:
        """The engine's streams exist as configured. Raises ``StartRefused`` naming a setting that cannot be had."""
        await self._streams.provision()
        await self._publisher.open()
        await self._watch_orphans()
        self._tasks.start("keep_streams", self._keep_streams())
        deaf_watch = DeafWatch(self._attachments.started, self._mailboxes, self._timing)
        self._tasks.start("deaf_watch", deaf_watch.run())

    @property
    def task_count(self) -> int:
        """How many background tasks this client runs."""
        return len(self._tasks)

    async def publish(self, topic: str, event: Event) -> Event:
        """Store and tell; see ``EventQueue``."""
        return await self._publisher.publish(topic, event)

    async def publish_live(self, topic: str, event: Event) -> Event:
        """Hand over and tell; see ``EventQueue``."""
        return await self._publisher.publish_live(topic, event)

    def add_publish_listener(self, listener: PublishListener) -> Callable[[], None]:
        """Register; see ``EventQueue``."""
        return self._publisher.add_listener(listener)

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        """Register; see ``EventQueue``."""
        return self._unheard.add(listener)

    async def ensure_subscription(self, subscription: Subscription) -> None:
        """Create detached; see ``EventQueue``. Raises ``StartRefused`` where one stands in the way."""
        await self._mailboxes.ensure(subscription)
        self._known.add(subscription)

    async def ensure_subscriptions(self, subscriptions: Collection[Subscription]) -> None:
        """Create many detached; see ``EventQueue``. Raises ``StartRefused`` where one stands in the way."""
        await self._mailboxes.ensure_all(subscriptions)
        self._known.update(subscriptions)

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        """Attach, one delivery at a time; see ``EventQueue``."""

        async def make(holds: Collection[str]) -> Attachment:
            stream = await self._ready(subscription)
            return SingleAttachment(subscription, stream, self._parts, handler=handler, holds=holds)

        await self._attachments.attach(subscription, make)

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Callable[[], BatchOptions] = BatchOptions,
    ) -> None:
        """Attach, one drain at a time; see ``EventQueue``."""

        async def make(holds: Collection[str]) -> Attachment:
            stream = await self._ready(subscription)
            return BatchAttachment(
                subscription,
                stream,
                self._parts,
                handler=handler,
                partition=partition,
                options=options,
                holds=holds,
            )

        await self._attachments.attach(subscription, make)

    async def hold(self, subscription: Subscription, name: str) -> None:
        """Fetch nothing while this stands; see ``EventQueue``."""
        await self._attachments.hold(subscription, name)

    async def lift(self, subscription: Subscription, name: str) -> None:
        """End one hold; see ``EventQueue``."""
        await self._attachments.lift(subscription, name)

    async def quiesce(self, subscription: Subscription) -> None:
        """Stop fetching; see ``EventQueue``."""
        await self._attachments.quiesce(subscription)

    async def unquiesce(self, subscription: Subscription) -> None:
        """Fetch again; see ``EventQueue``."""
        await self._attachments.unquiesce(subscription)

    async def wait_idle(self, subscription: Subscription) -> None:
        """Wait for the handler and the report of its outcome; see ``EventQueue``. Not from inside that handler."""
        await self._attachments.wait_idle(subscription)

    async def detach(self, subscription: Subscription) -> None:
        """Close the attachment; see ``EventQueue``. What its handler still holds comes back by the ack clock."""
        await self._attachments.detach(subscription)

    async def delete_subscription(self, subscription: Subscription) -> None:
        """Destroy mailbox and mail; see ``EventQueue``."""
        await self.detach(subscription)
        self._known.discard(subscription)
        await self._mailboxes.delete(subscription)

    async def release_held(self, subscription: Subscription) -> None:
        """Give back a dead holder's deliveries; see ``EventQueue``. Takes about 0.2 s when there are any.

        Where this process is attached it stops fetching first and waits for its own handler.
        """
        await self._attachments.release_held(subscription)

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        """Every durable mailbox below a pattern; see ``EventQueue``."""
        return await self._mailboxes.matching(pattern)

    async def mailbox(self, subscription: Subscription) -> MailboxState | None:
        """What a mailbox retains; see ``EventQueue``."""
        return await self._mailboxes.state(subscription, attached_here=subscription in self._attachments)

    async def serve(self, subject: str, responder: Responder) -> StreamSubscription:
        """Answer ephemeral questions; see ``EventQueue``."""
        return await self._questions.serve(subject, responder)

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        """Ask every node that serves a subject; see ``EventQueue``."""
        return await self._questions.scatter(subject, payload, timeout_s=timeout_s, expected=expected)

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        """Open a live feed; see ``EventQueue``."""
        if topics.namespace_stream(pattern) is None:
            raise ValueError(f"{pattern!r} spans several namespaces")
        stream = await self._streams.stream_of(pattern)
        feed = LiveFeed(stream, pattern, handler, wire=self._wire, api=self._api, link=self._link, tasks=self._tasks)
        await feed.open()
        self._feeds = {known for known in self._feeds if not known.closed} | {feed}
        return feed

    async def close(self) -> None:
        """Detach everything, end feeds and tasks. A handler that still runs is cancelled and not reported."""
        self._unwatch()
        self._publisher.stop()
        await self._attachments.close()
        if self._orphans is not None:
            await self._orphans.detach()
        await asyncio.gather(self._publisher.close(), *(feed.close() for feed in self._feeds))
        await self._tasks.close()
        self._silence.close()
        self._link.close()

    async def _watch_orphans(self) -> None:
        """Take part in the one group of the fleet that buries what was lost with its holder."""
        if not self._streams.has_advisories:
            return
        # An advisory must never become an orphan itself.
        config = replace(self._config, max_deliver=limits.ORPHAN_DELIVERIES_MAX)
        mailboxes = Mailboxes(self._api, self._streams, config)
        await mailboxes.ensure(ORPHANS)
        parts = replace(
            self._parts,
            config=config,
            mailboxes=mailboxes,
            settlement=Settlement(self._api, self._link, self._dead_letters, config, self._unheard),
            stranded=_no_matter,
        )
        self._orphans = OrphanAttachment(parts, api=self._api, dead_letters=self._dead_letters, unheard=self._unheard)
        self._orphans.start()

    async def _ready(self, subscription: Subscription) -> str:
        """The mailbox exists; the name of its stream."""
        await self.ensure_subscription(subscription)
        return await self._streams.stream_of(subscription.topic)

    def _forget(self, attachment: Attachment) -> None:
        self._attachments.forget(attachment)
        self._known.discard(attachment.subscription)

    def _tell_stranded(self, subscription: Subscription) -> None:
        if self._on_stranded is not None:
            self._on_stranded(subscription)

    def _on_link_returned(self) -> None:
        if self._forgets_all:
            # A stream that is made again before its mailboxes takes what is published, and keeps nothing of it.
            self._whole.clear()
        self._link_returned.set()

    async def _keep_streams(self) -> None:
        """After each return of the link: streams in memory, and their mailboxes, do not survive a broker's restart."""
        failures = 0
        while True:
            await self._link_returned.wait()
            self._link_returned.clear()
            try:
                await self._restore()
                self._whole.set()
                failures = 0
            except (Unavailable, StartRefused) as error:
                _log.warning("streams_unconfirmed", error=str(error))
                self._link_returned.set()
                await self._link.settled(failures)
                failures += 1

    async def _restore(self) -> None:
        vanished = await self._streams.provision_again()
        lost = [known for known in self._known if topics.namespace_stream(known.topic) in vanished]
        results = await asyncio.gather(*(self._mailboxes.ensure(known) for known in lost), return_exceptions=True)
        for failure in results:
            if isinstance(failure, CrewletError):
                raise failure


def _no_matter(_subscription: Subscription) -> None:
    """Advisories that another node holds are being worked there."""
