"""The twin's broker: streams, durable mailboxes, dead letters and live feeds, apart from any client (E-009)."""

from __future__ import annotations

import structlog

from crewlet import topics
from crewlet.backends.memory.queue_ephemeral import LiveFeed, Responders
from crewlet.backends.memory.queue_mail import Burial, Mail, StoredMessage
from crewlet.backends.memory.queue_mailbox import MemoryMailbox
from crewlet.backends.memory.queue_stream import MemoryStream, stream_limits
from crewlet.backends.memory.queue_untold import Untold
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import MailboxFull
from crewlet.queue import DeadLetter, QueueConfig, Subscription, UnheardLetter

__all__ = ["MemoryBroker", "letter_of"]

_log = structlog.get_logger(__name__)


class MemoryBroker:
    """What stays when a client goes; any number of clients share one.

    ``clock`` decides ages and duplicates; the ack clocks are the event loop's. Beside what clients use there is what a
    test looks at: :meth:`retained`, :meth:`held`, :meth:`dead_letters`, :meth:`log`, :meth:`mailboxes`, and
    :meth:`publish_raw` for bytes that are no event.
    """

    def __init__(self, clock: Clock, *, max_payload_bytes: int = limits.BROKER_MAX_PAYLOAD_BYTES) -> None:
        self.max_payload_bytes = max_payload_bytes
        self.responders = Responders()
        self.untold = Untold()
        self._clock = clock
        self._config = QueueConfig()
        self._streams: dict[str, MemoryStream] = {}
        self._mailboxes: dict[str, dict[str, MemoryMailbox]] = {}
        self._feeds: dict[str, list[LiveFeed]] = {}

    def retained(self, subscription: Subscription) -> list[Mail]:
        """The mail of a mailbox that nobody has settled: what is held, by age, then what waits, as it will be served.

        Nothing where there is no such mailbox.
        """
        mailbox = self.mailbox(subscription)
        return [] if mailbox is None else [*mailbox.held, *mailbox.waiting]

    def held(self, subscription: Subscription) -> list[Mail]:
        """The mail that somebody holds, each with its holder's node, by age."""
        mailbox = self.mailbox(subscription)
        return [] if mailbox is None else mailbox.held

    def dead_letters(self, subscription: Subscription | None = None) -> list[DeadLetter]:
        """What was buried, for one mailbox or for all, in order."""
        subject = ">" if subscription is None else topics.dead_letter(subscription.topic, subscription.group)
        return [letter_of(message) for message in self.log(topics.STREAM_DLQ, subject)]

    def log(self, stream: str, pattern: str = ">") -> list[StoredMessage]:
        """What a stream keeps under ``pattern``, in order; nothing where nothing was ever stored there."""
        found = self._streams.get(stream)
        return [] if found is None else found.after(0, pattern)

    def mailboxes(self, pattern: str = ">") -> list[Subscription]:
        """Every mailbox whose topic ``pattern`` covers, in whatever namespace, by topic and group."""
        covered = sorted(topic for topic in self._mailboxes if topics.matches(pattern, topic))
        return [Subscription(topic, group) for topic in covered for group in sorted(self._mailboxes[topic])]

    def publish_raw(self, topic: str, payload: bytes) -> None:
        """Store bytes as no client would: unchecked, unstamped, never a duplicate."""
        self.store(topic, payload)

    def configure(self, config: QueueConfig) -> None:
        """A client has come: the streams are kept as it is configured."""
        self._config = config
        for stream in self._streams.values():
            stream.kept = stream_limits(stream.name, config)

    def store(self, topic: str, payload: bytes, *, message_id: str = "", burial: Burial | None = None) -> None:
        """Store a message and hand it to every mailbox and feed that covers it, unless ``message_id`` is a repeat.

        Raises ``MailboxFull`` where the stream has no room, ``ValueError`` for a topic that is a pattern.
        """
        stream = self._stream_of(_exact(topic))
        if message_id and stream.has_seen(message_id):
            return
        mailboxes = self._mailboxes.get(topic, {})
        if not stream.has_room(topic, payload, readers=len(mailboxes)):
            _log.error("mailbox_full", topic=topic, stream=stream.name, max_bytes=stream.kept.max_bytes)
            raise MailboxFull(topic, f"{stream.name} holds {stream.kept.max_bytes} bytes at most")
        if message_id:
            stream.remember(message_id)
        message = stream.append(topic, payload, readers=len(mailboxes), burial=burial)
        for mailbox in mailboxes.values():
            mailbox.put(message)
        for feed in [*self._feeds.get(stream.name, ())]:
            feed.offer(message)

    def ensure(self, subscription: Subscription, config: QueueConfig) -> MemoryMailbox:
        """The mailbox, made from the first message on where missing, and configured so from now on.

        Raises ``ValueError`` for a topic that is a pattern.
        """
        by_group = self._mailboxes.setdefault(_exact(subscription.topic), {})
        mailbox = by_group.get(subscription.group)
        if mailbox is None:
            stream = self._stream_of(subscription.topic)
            mailbox = by_group[subscription.group] = MemoryMailbox(subscription, stream, config, bury=self._bury)
        mailbox.config = config
        return mailbox

    def mailbox(self, subscription: Subscription) -> MemoryMailbox | None:
        """The mailbox, or ``None``."""
        return self._mailboxes.get(subscription.topic, {}).get(subscription.group)

    def delete(self, subscription: Subscription) -> None:
        """Destroy the mailbox and the mail that it alone retains; harmless where there is none."""
        by_group = self._mailboxes.get(subscription.topic, {})
        mailbox = by_group.pop(subscription.group, None)
        if not by_group:
            self._mailboxes.pop(subscription.topic, None)
        if mailbox is not None:
            mailbox.delete()

    def listed(self, pattern: str) -> list[Subscription]:
        """The mailboxes under ``pattern`` on streams of the engine's naming (E-031)."""
        return [found for found in self.mailboxes(pattern) if topics.holds_mailboxes(self._stream_of(found.topic).name)]

    def open_feed(self, feed: LiveFeed) -> None:
        """Offer ``feed`` what is stored from now on. Raises ``ValueError`` where its pattern spans namespaces."""
        stream = self._stream_of(feed.pattern)
        feed.position = stream.last_sequence
        self._feeds.setdefault(stream.name, []).append(feed)

    def catch_up(self, feed: LiveFeed) -> None:
        """Offer ``feed`` what was stored while it could not be reached, unless that is too much."""
        stream = self._stream_of(feed.pattern)
        missed = stream.after(feed.position, feed.pattern)
        if len(missed) > limits.LIVE_FEED_REPLAY_MAX:
            _log.warning("live_feed_skipped", pattern=feed.pattern, missed=len(missed))
            feed.position = stream.last_sequence
            return
        for message in missed:
            feed.offer(message)

    def close_feed(self, feed: LiveFeed) -> None:
        """Offer it nothing any more."""
        feeds = self._feeds.get(self._stream_of(feed.pattern).name, [])
        if feed in feeds:
            feeds.remove(feed)

    def _bury(self, subscription: Subscription, mail: Mail, reason: str, *, unheard: bool, holder_lost: bool) -> bool:
        message = mail.message
        note = Burial(
            subscription,
            message.stream,
            message.sequence,
            mail.deliveries,
            _one_line(reason),
        )
        facts = {"topic": subscription.topic, "group": subscription.group, "stream_seq": message.sequence}
        try:
            self.store(topics.dead_letter(subscription.topic, subscription.group), message.payload, burial=note)
        except MailboxFull as error:
            _log.error("dead_letter_failed", **facts, deliveries=mail.deliveries, reason=reason, error=str(error))
            return False
        _log.warning("dead_lettered", **facts, deliveries=mail.deliveries, reason=reason)
        event = message.event if unheard else None
        if event is not None:
            letter = UnheardLetter(subscription=subscription, event=event, reason=reason, holder_lost=holder_lost)
            self.untold.add(letter)
        return True

    def stream(self, name: str) -> MemoryStream:
        """The stream, made where missing."""
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = MemoryStream(name, self._clock, stream_limits(name, self._config))
        return found

    def _stream_of(self, topic: str) -> MemoryStream:
        name = topics.namespace_stream(topic)
        if name is None:
            raise ValueError(f"{topic!r} spans several namespaces")
        return self.stream(name)


def _one_line(text: str) -> str:
    """``text`` as the real broker's headers can carry it."""
    plain = " ".join(text.encode("ascii", "replace").decode("ascii").split())
    return plain[: limits.DEAD_LETTER_REASON_MAX_CHARS]


def _exact(topic: str) -> str:
    if not {"*", ">"}.isdisjoint(topic.split(".")):
        raise ValueError(f"{topic!r} is a pattern, not a topic")
    return topic


def letter_of(message: StoredMessage) -> DeadLetter:
    """A message of the dead-letter stream as a letter."""
    burial = message.burial
    return DeadLetter(
        id=str(message.sequence),
        topic="" if burial is None else burial.subscription.topic,
        group="" if burial is None else burial.subscription.group,
        event=message.event,
        payload=message.payload,
        reason="" if burial is None else burial.reason,
        deliveries=0 if burial is None else burial.deliveries,
        at=message.published_at,
        stream="" if burial is None else burial.stream,
        stream_seq=0 if burial is None else burial.sequence,
    )
