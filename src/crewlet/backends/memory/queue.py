"""The event queue's twin: one client of a broker that lives in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from crewlet import topics
from crewlet.backends.memory.queue_attachment import QUIESCED, Attachment, AttachmentParts, Work, work_of_one
from crewlet.backends.memory.queue_attachments import Attachments
from crewlet.backends.memory.queue_broker import MemoryBroker
from crewlet.backends.memory.queue_ephemeral import Closing, LiveFeed, Server
from crewlet.backends.memory.queue_line import Line
from crewlet.backends.memory.queue_publisher import Publisher
from crewlet.backends.memory.queue_settlement import Settlement
from crewlet.backends.memory.queue_untold import Teller
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
)

__all__ = ["MemoryQueue"]


class MemoryQueue(EventQueue):
    """One process's client of a :class:`MemoryBroker`; see ``EventQueue`` for what each verb promises.

    A failure comes back without any timer: behind the mail that was waiting, and then at once (E-035). Beside the
    contract there are :meth:`cut` and :meth:`heal`, and :meth:`crash` for a killed process.
    """

    def __init__(self, broker: MemoryBroker, *, node: str, config: QueueConfig | None = None) -> None:
        self._broker = broker
        self._config = config or QueueConfig()
        self._line = Line(node)
        self._tasks = Tasks(f"queue:{node}")
        self._publisher = Publisher(broker, self._line, self._tasks)
        self._teller = Teller(broker.untold, self._line, self._tasks)
        self._attachments = Attachments()
        self._parts = AttachmentParts(
            line=self._line,
            settlement=Settlement(self._line, self._tasks, self._config),
            config=self._config,
            tasks=self._tasks,
            ended=self._attachments.forget,
        )
        self._feeds: list[LiveFeed] = []
        self._endings: list[Callable[[], None]] = []
        broker.configure(self._config)

    @property
    def node(self) -> str:
        """Whose client this is."""
        return self._line.node

    @property
    def task_count(self) -> int:
        """How many background tasks this client runs."""
        return len(self._tasks)

    def cut(self) -> None:
        """The broker and this client hear nothing of each other: calls raise ``Unavailable``, what it holds is held."""
        self._line.cut()
        for attachment in self._attachments.started():
            attachment.line_cut()

    def heal(self) -> None:
        """They hear each other again: mail is taken, outcomes are reported, feeds catch up."""
        self._line.heal()
        if self._line.is_up:
            for attachment in self._attachments.started():
                attachment.line_healed()
            for feed in [*self._feeds]:
                self._broker.catch_up(feed)
            self._broker.untold.offer()

    def crash(self) -> None:
        """The process is killed: its handlers stop, nothing is handed back or said, and no call works any more.

        What it held stays held until its ack clock runs out or a successor releases it.
        """
        self._line.end()
        self._attachments.crash()
        self._tasks.cancel()
        self._end_all()
        self._broker.untold.leave(self._teller)

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
        """Register; see ``EventQueue``. What waited for somebody to listen is told now."""
        return self._teller.add(listener)

    async def ensure_subscription(self, subscription: Subscription) -> None:
        """Create detached; see ``EventQueue``."""
        await self._line.reach()
        self._broker.ensure(subscription, self._config)

    async def ensure_subscriptions(self, subscriptions: Collection[Subscription]) -> None:
        """Create many detached; see ``EventQueue``."""
        for subscription in subscriptions:
            await self.ensure_subscription(subscription)

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        """Attach; see ``EventQueue``."""
        await self._attach(subscription, work_of_one(handler))

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Callable[[], BatchOptions] = BatchOptions,
    ) -> None:
        """Attach to whole hauls; see ``EventQueue``."""
        await self._attach(subscription, Work(handler, partition, options))

    async def hold(self, subscription: Subscription, name: str) -> None:
        """Take nothing while it stands; see ``EventQueue``."""
        self._attachments.stop(subscription, name)

    async def lift(self, subscription: Subscription, name: str) -> None:
        """End one hold; see ``EventQueue``."""
        self._attachments.go_on(subscription, name)

    async def quiesce(self, subscription: Subscription) -> None:
        """Stop taking mail; see ``EventQueue``."""
        self._attachments.quiesce(subscription)

    async def unquiesce(self, subscription: Subscription) -> None:
        """Take mail again; see ``EventQueue``."""
        self._attachments.go_on(subscription, QUIESCED)

    async def wait_idle(self, subscription: Subscription) -> None:
        """Wait for the handler and the report of its outcome; see ``EventQueue``. Not from inside that handler."""
        if attachment := self._attachments.get(subscription):
            await attachment.wait_idle()

    async def detach(self, subscription: Subscription) -> None:
        """Close the attachment; see ``EventQueue``. What its handler still holds comes back by the ack clock."""
        await self._attachments.detach(subscription)

    async def delete_subscription(self, subscription: Subscription) -> None:
        """Destroy mailbox and mail; see ``EventQueue``."""
        await self.detach(subscription)
        await self._line.reach()
        self._broker.delete(subscription)

    async def release_held(self, subscription: Subscription) -> None:
        """Give back a dead holder's deliveries; see ``EventQueue``. Waits for this process's own handler first."""
        if attachment := self._attachments.get(subscription):
            await attachment.release()
            return
        await self._line.reach()
        if mailbox := self._broker.mailbox(subscription):
            mailbox.release_held()

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        """Every mailbox under ``pattern``; see ``EventQueue``."""
        await self._line.reach()
        return self._broker.listed(pattern)

    async def mailbox(self, subscription: Subscription) -> MailboxState | None:
        """What it retains; see ``EventQueue``."""
        await self._line.reach()
        mailbox = self._broker.mailbox(subscription)
        if mailbox is None:
            return None
        mails = self._broker.retained(subscription)
        pending = sum(1 for mail in mails if mail.deliveries == 0)
        return MailboxState(
            subscription=subscription,
            pending=pending,
            held=len(mails) - pending,
            oldest=min((mail.message.published_at for mail in mails), default=None),
            waiting_pulls=mailbox.asker_count,
            attached_here=subscription in self._attachments,
        )

    async def serve(self, subject: str, responder: Responder) -> StreamSubscription:
        """Answer; see ``EventQueue``."""
        await self._line.reach()
        return self._closing(self._broker.responders.add(Server(subject, responder, self._line, self._tasks)))

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        """Ask; see ``EventQueue``. Returns early too where all who were asked have answered."""
        await self._line.reach()
        return await self._broker.responders.ask(subject, payload, self._line, timeout_s=timeout_s, expected=expected)

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        """Open a live feed; see ``EventQueue``."""
        if topics.namespace_stream(pattern) is None:
            raise ValueError(f"{pattern!r} spans several namespaces")
        await self._line.reach()
        feed = LiveFeed(pattern, handler, self._line)
        self._broker.open_feed(feed)
        self._feeds.append(feed)
        return self._closing(partial(self._close_feed, feed))

    async def close(self) -> None:
        """Detach everything, end feeds and tasks. A handler that still runs is cancelled and not reported."""
        self._publisher.close()
        await self._attachments.close()
        self._line.end()
        self._end_all()
        self._broker.untold.leave(self._teller)
        await self._tasks.close()

    async def _attach(self, subscription: Subscription, work: Work) -> None:
        async def make(stops: Collection[object]) -> Attachment:
            await self._line.reach()
            return Attachment(self._broker.ensure(subscription, self._config), work, self._parts, stops=stops)

        await self._attachments.attach(subscription, make)

    def _end_all(self) -> None:
        self._publisher.close()
        for end in [*self._endings]:
            end()

    def _closing(self, end: Callable[[], None]) -> StreamSubscription:
        def close() -> None:
            if close in self._endings:
                self._endings.remove(close)
                end()

        self._endings.append(close)
        return Closing(close)

    def _close_feed(self, feed: LiveFeed) -> None:
        self._feeds.remove(feed)
        self._broker.close_feed(feed)
