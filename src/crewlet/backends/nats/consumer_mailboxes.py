"""Durable mailboxes at the broker: made, adopted, given back after a dead holder, destroyed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec
import structlog

from crewlet import topics
from crewlet.backends.nats.consumer_settings import consumer_differences, mailbox_settings, recorded_pair
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, ConsumerConfig, ConsumerInfo, StoredMessage, ns
from crewlet.backends.nats.streams import Streams
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.tasks import each_at_once
from crewlet.queue import MailboxState, QueueConfig, Subscription

__all__ = ["Mailboxes"]

_log = structlog.get_logger(__name__)

_CONSUMER_EXISTS: Final = 10148
_AT_ONCE_S: Final = 0.001


class Mailboxes:
    """The durable consumers behind subscriptions. Every call may raise ``Unavailable``."""

    def __init__(self, api: JetStream, streams: Streams, config: QueueConfig) -> None:
        self._api = api
        self._streams = streams
        self._config = config
        self._creating = asyncio.Semaphore(limits.MAILBOX_CREATES_IN_FLIGHT_MAX)

    async def ensure(self, subscription: Subscription) -> None:
        """The mailbox exists as configured; one that differs is repaired, or ``StartRefused`` names the settings.

        One request where it is missing or as it should be, so a fleet may do this N times. The repair also undoes a
        :meth:`release_held` that died halfway.
        """
        stream = await self._streams.stream_of(subscription.topic)
        wanted = mailbox_settings(subscription, self._config)
        async with self._creating:
            try:
                info = await self._api.consumer_create(stream, wanted, action="create")
            except ApiError as error:
                if error.err_code != _CONSUMER_EXISTS:
                    raise _refused(subscription, error.description) from error
                info = await self._repair(stream, wanted, subscription)
        _accept(subscription, wanted, info.config)

    async def ensure_all(self, subscriptions: Collection[Subscription]) -> None:
        """As :meth:`ensure` for each; where they are many, the pages of the broker's list tell which need a request.

        The pages say what is in force, so they are the read-back as well. A mailbox that comes or goes while they are
        read is at worst left out of them, and then made, which is harmless.
        """
        by_stream: dict[str, list[Subscription]] = {}
        for subscription in subscriptions:
            by_stream.setdefault(await self._streams.stream_of(subscription.topic), []).append(subscription)
        for stream, wanted in by_stream.items():
            many = len(wanted) >= limits.MAILBOXES_LISTED_FROM
            asked_for = await self._unlisted(stream, wanted) if many else wanted
            await each_at_once(asked_for, self.ensure, at_once=limits.MAILBOXES_CREATED_AT_ONCE)

    async def _unlisted(self, stream: str, wanted: Iterable[Subscription]) -> list[Subscription]:
        with _answered():
            listed = {info.name: info.config for info in await self._api.consumer_infos(stream)}
        return [each for each in wanted if not self._as_wanted(each, listed)]

    def _as_wanted(self, subscription: Subscription, listed: Mapping[str, ConsumerConfig]) -> bool:
        wanted = mailbox_settings(subscription, self._config)
        found = listed.get(wanted.durable_name)
        return found is not None and not consumer_differences(wanted, found)

    async def recreate_missing(self, subscription: Subscription) -> bool:
        """Make the mailbox again where the broker has lost it; true where that was so."""
        if await self.info(subscription) is not None:
            return False
        await self.ensure(subscription)
        return True

    async def info(self, subscription: Subscription) -> ConsumerInfo | None:
        """How the mailbox stands, or ``None`` where there is none."""
        stream = await self._streams.stream_of(subscription.topic)
        with _answered():
            return await self._api.consumer_info(stream, topics.durable_name(subscription.topic, subscription.group))

    async def matching(self, pattern: str) -> list[Subscription]:
        """Every durable mailbox whose topic ``pattern`` covers, whoever made it; only our own streams are searched."""
        found: list[Subscription] = []
        with _answered():
            for stream in await self._streams_below(pattern):
                durables = [info for info in await self._api.consumer_infos(stream) if info.config.durable_name]
                found += [each for info in durables if (each := _named(info)) is not None]
        return sorted({each for each in found if topics.matches(pattern, each.topic)}, key=_by_name)

    async def state(self, subscription: Subscription, *, attached_here: bool) -> MailboxState | None:
        """What the mailbox retains, or ``None`` where there is none."""
        info = await self.info(subscription)
        if info is None:
            return None
        oldest: StoredMessage | None = None
        if info.num_pending or info.num_ack_pending:
            with _answered():
                behind = info.ack_floor.stream_seq + 1
                oldest = await self._api.next_message(info.stream_name, behind, subscription.topic)
        return MailboxState(
            subscription=subscription,
            pending=info.num_pending,
            held=info.num_ack_pending,
            oldest=oldest.time if oldest else None,
            waiting_pulls=info.num_waiting,
            attached_here=attached_here,
        )

    async def delete(self, subscription: Subscription) -> None:
        """Destroy the mailbox and what it alone retained; harmless where there is none."""
        stream = await self._streams.stream_of(subscription.topic)
        with _answered():
            await self._api.consumer_delete(stream, topics.durable_name(subscription.topic, subscription.group))
            await self._purge_unclaimed(stream, subscription.topic)

    async def release_held(self, subscription: Subscription) -> None:
        """Give back what was fetched and never settled: each comes again at the head, one delivery dearer.

        The ack clock is turned down for a moment, so that the broker's own timer hands everything back, and up again.
        The broker does not say when its timer ran (its count of pending acks includes what waits to come again), so
        the wait is a measured one; a mailbox where it was too short still shows as held to whoever attaches.
        """
        info = await self.info(subscription)
        if info is None or info.num_ack_pending == 0:
            return
        wanted = mailbox_settings(subscription, self._config)
        lowered = msgspec.structs.replace(wanted, ack_wait=ns(_AT_ONCE_S))
        for _ in range(limits.HELD_RELEASE_ATTEMPTS_MAX):
            await self._change(info, {"ack_wait": lowered.ack_wait}, lowered, subscription)
            try:
                await asyncio.sleep(limits.HELD_RELEASE_WAIT_S)
                # A peer that walked the mailboxes meanwhile has repaired the clock before it could run out.
                undisturbed = await self._clock_still(lowered, subscription)
            finally:
                await self._change(info, {"ack_wait": wanted.ack_wait}, wanted, subscription)
            if undisturbed:
                _log.info("held_deliveries_released", topic=subscription.topic, count=info.num_ack_pending)
                return
        raise Unavailable(f"{subscription.topic}: a peer keeps changing the mailbox {wanted.durable_name}")

    async def _repair(self, stream: str, wanted: ConsumerConfig, subscription: Subscription) -> ConsumerInfo:
        found = await self.info(subscription)
        if found is None:
            return await self._create_again(stream, wanted, subscription)
        differences = consumer_differences(wanted, found.config)
        if not differences:
            return found
        changes: dict[str, object] = {name: want for name, (want, _) in differences.items() if "." not in name}
        info = await self._change(found, {**changes, "metadata": wanted.metadata}, wanted, subscription)
        _log.warning("mailbox_repaired", topic=subscription.topic, settings=_told(differences))
        return info

    async def _create_again(self, stream: str, wanted: ConsumerConfig, subscription: Subscription) -> ConsumerInfo:
        try:
            return await self._api.consumer_create(stream, wanted)
        except ApiError as error:
            raise _refused(subscription, error.description) from error

    async def _change(
        self, found: ConsumerInfo, changes: dict[str, object], wanted: ConsumerConfig, subscription: Subscription
    ) -> ConsumerInfo:
        """Change what differs and nothing else: an operator may have set what we do not know of, a pause for one."""
        try:
            await self._api.consumer_change(found.stream_name, found.name, changes)
        except ApiError as error:
            raise _refused(subscription, error.description) from error
        # Read back: the first such answer after a broker's restart still tells of the settings from before it.
        info = await self.info(subscription)
        if info is None:
            raise Unavailable(f"{subscription.topic}: the mailbox {found.name} vanished while it was changed")
        _accept(subscription, wanted, info.config)
        return info

    async def _clock_still(self, lowered: ConsumerConfig, subscription: Subscription) -> bool:
        info = await self.info(subscription)
        return info is not None and info.config.ack_wait == lowered.ack_wait

    async def _streams_below(self, pattern: str) -> list[str]:
        one = topics.namespace_stream(pattern)
        names = await self._api.stream_names()
        return [name for name in names if topics.holds_mailboxes(name) and one in (None, name)]

    async def _purge_unclaimed(self, stream: str, topic: str) -> None:
        """An interest stream may keep what was past its delivery limit, for nobody and for ever."""
        info = await self._api.stream_info(stream, subjects_filter=topic)
        if info is None or not info.state.subjects or info.config.retention != "interest":
            return
        others = await self._api.consumer_infos(stream)
        if not any(topics.matches(other.config.filter_subject or ">", topic) for other in others):
            await self._api.stream_purge(stream, subject=topic)


@contextmanager
def _answered() -> Generator[None]:
    """A broker that says no to a question about a mailbox (its stream is being made again) has not said what holds."""
    try:
        yield
    except ApiError as error:
        raise Unavailable(str(error)) from error


def _named(info: ConsumerInfo) -> Subscription | None:
    pair = recorded_pair(info)
    if pair is None:
        _log.warning("jetstream_subscription_unnamed", stream=info.stream_name, consumer=info.name)
    return pair


def _by_name(subscription: Subscription) -> tuple[str, str]:
    return subscription.topic, subscription.group


def _accept(subscription: Subscription, wanted: ConsumerConfig, found: ConsumerConfig) -> None:
    differences = consumer_differences(wanted, found)
    if differences:
        raise _refused(subscription, _told(differences))


def _told(differences: dict[str, tuple[object, object]]) -> str:
    return ", ".join(f"{name} is {have!r}, wanted {want!r}" for name, (want, have) in differences.items())


def _refused(subscription: Subscription, why: str) -> StartRefused:
    name = topics.durable_name(subscription.topic, subscription.group)
    remedy = f"delete this consumer; of an embedded broker: stop it and remove …/obs/{name} below its store directory"
    return StartRefused(f"mailbox {name} of {subscription.topic} cannot be used: {why}", remedy)
