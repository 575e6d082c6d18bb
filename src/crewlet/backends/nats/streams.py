"""The queue's streams by purpose: what each keeps and for how long, made, read back, repaired or refused by name."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
import structlog

from crewlet import topics
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import (
    CONSUMER_LIMIT_REACHED,
    STREAM_NAME_IN_USE,
    ApiError,
    Storage,
    StreamConfig,
    StreamInfo,
    awaits_peers,
    lacks_room,
    ns,
)
from crewlet.backends.nats.stream_room import StreamRoom, find_room, shipped_room
from crewlet.base import limits
from crewlet.base.clock import SystemClock
from crewlet.base.errors import StartRefused
from crewlet.queue import QueueConfig

__all__ = ["Streams", "advisory_stream", "on_demand_stream", "purpose_streams", "stream_differences"]

_log = structlog.get_logger(__name__)

_COMPARED: Final = (
    "subjects",
    "retention",
    "storage",
    "discard",
    "num_replicas",
    "max_consumers",
    "max_msgs",
    "max_bytes",
    "max_age",
    "max_msgs_per_subject",
    "duplicate_window",
)
_UNSET_IS_UNLIMITED: Final = frozenset({"max_msgs", "max_bytes", "max_msgs_per_subject"})
_SIZE_SETTINGS: Final = {
    topics.STREAM_EVENTS: "event_max_bytes",
    topics.STREAM_CONFIG: "config_max_bytes",
    topics.STREAM_DLQ: "dead_letter_max_bytes",
    topics.STREAM_JOURNAL: "journal_max_bytes",
}
_REMEDY: Final = "move the stream away or fix its settings"
_MORE_IS_FINE: Final = frozenset({"max_consumers", "num_replicas"})
_NEVER_REPAIRED: Final = frozenset({"retention", "storage", "num_replicas"})
"""A stream that differs here was made for something else, and changing it may drop what it holds; fewer copies than
wanted are raised by whoever knows that the members have the room."""


def purpose_streams(config: QueueConfig, storage: Storage, room: StreamRoom | None = None) -> tuple[StreamConfig, ...]:
    """The six streams of the engine (E-020 to E-024).

    Mailboxes, dead letters and the journal refuse what no longer fits (``discard: new``), records of what happened give
    up their oldest, each within its own part of ``room``, so that none takes the buckets' part.
    """
    events_s = config.event_retention_s
    room = room or shipped_room(config)
    agent, notifications = topics.STREAM_AGENT, topics.STREAM_NOTIFICATIONS
    window_s, letters_window_s = limits.DUPLICATE_WINDOW_S, limits.DEAD_LETTER_DUPLICATE_WINDOW_S
    return (
        _mailboxes(agent, [topics.stream_subjects(agent)], config, storage, room.mailboxes),
        _mailboxes(notifications, [topics.stream_subjects(notifications)], config, storage, room.mailboxes),
        _log_of(topics.STREAM_EVENTS, events_s, window_s, config, storage, room.events),
        _log_of(topics.STREAM_CONFIG, limits.CONFIG_RETENTION_S, window_s, config, storage, room.nudges),
        msgspec.structs.replace(
            _log_of(topics.STREAM_DLQ, events_s, letters_window_s, config, storage, room.dead_letters),
            discard="new",
        ),
        msgspec.structs.replace(
            _log_of(topics.STREAM_JOURNAL, limits.JOURNAL_RETENTION_S, window_s, config, storage, room.journal),
            discard="new",
        ),
    )


def advisory_stream(config: QueueConfig, storage: Storage) -> StreamConfig:
    """What the broker says of messages that it will offer no more, each kept until one node has acted on it."""
    stream = _log_of(
        topics.STREAM_ADVISORIES,
        config.event_retention_s,
        limits.DUPLICATE_WINDOW_S,
        config,
        storage,
        limits.ADVISORY_STREAM_BYTES,
    )
    return msgspec.structs.replace(stream, retention="workqueue")


def on_demand_stream(topic: str, config: QueueConfig, storage: Storage) -> StreamConfig:
    """The mailbox stream for a namespace that the engine does not define itself (E-025).

    Raises ``ValueError`` for a pattern that spans namespaces.
    """
    name, space = topics.namespace_stream(topic), topics.namespace(topic)
    if name is None or space is None:
        raise ValueError(f"{topic!r} spans several namespaces")
    size = config.mailbox_max_bytes or limits.ON_DEMAND_STREAM_BYTES
    return _mailboxes(name, [space, f"{space}.>"], config, storage, size)


def stream_differences(wanted: StreamConfig, found: StreamConfig) -> dict[str, tuple[object, object]]:
    """The settings in which ``found`` is not as ``wanted``: by name, what is wanted and what there is."""
    differences: dict[str, tuple[object, object]] = {}
    for name in _COMPARED:
        want, have = getattr(wanted, name), getattr(found, name)
        if name in _UNSET_IS_UNLIMITED:
            want, have = want or -1, have or -1
        if name in _MORE_IS_FINE and have >= want:
            continue
        if want != have:
            differences[name] = (want, have)
    return differences


class Streams:
    """The streams on one broker that this process stands on."""

    def __init__(self, api: JetStream, config: QueueConfig, storage: Storage, *, takes_as_found: bool = False) -> None:
        self._api = api
        self._config = config
        self._storage: Storage = storage
        self._takes_as_found = takes_as_found
        self.has_advisories = False
        self._wanted: dict[str, StreamConfig] = {}
        self._created: dict[str, datetime | None] = {}

    async def provision(self) -> None:
        """The engine's own streams exist as configured. Raises ``StartRefused`` where one cannot be made so."""
        # First, and before any room is asked for: the broker removes an account's directory with the last stream in
        # it, and a stream that is made at that moment, a bucket of a peer's perhaps, fails.
        self.has_advisories = await self._provision_advisories()
        for stream in purpose_streams(self._config, self._storage, await self._room()):
            await self._ensure(stream)

    async def stream_of(self, topic: str) -> str:
        """The name of the stream that carries ``topic``, made on first use where the namespace is not ours."""
        name = topics.namespace_stream(topic)
        if name is None or name not in self._wanted:
            stream = on_demand_stream(topic, self._config, self._storage)
            await self._ensure(stream)
            return stream.name
        return name

    async def provision_again(self) -> frozenset[str]:
        """After a lost link: every stream used so far exists. Returns those that had vanished with all they held."""
        vanished: set[str] = set()
        for stream in [*self._wanted.values()]:
            if await self._ensure(stream):
                _log.error("stream_recreated", stream=stream.name, lost="everything it held")
                vanished.add(stream.name)
        return frozenset(vanished)

    async def _provision_advisories(self) -> bool:
        try:
            await self._ensure(advisory_stream(self._config, self._storage))
        except StartRefused as error:
            cause = error.__cause__
            if isinstance(cause, ApiError) and awaits_peers(cause):
                raise
            # The account may have another that takes them, for its operator's own use.
            _log.error("orphans_unwatched", error=str(error))
            return False
        return True

    async def _room(self) -> StreamRoom:
        """What the streams may take; nobody is asked where there are streams, since these keep what they have."""
        try:
            found = await self._api.stream_info(topics.STREAM_AGENT)
            if found is not None and found.config.max_bytes > 0:
                # A process that died while it asked may have left its question standing, which takes room.
                await self._api.stream_delete(topics.STREAM_ROOM_PROBE)
                return shipped_room(self._config)
            return await find_room(self._api, self._config, self._storage)
        except ApiError as error:
            raise StartRefused(f"the broker does not say what it grants: {error.description}") from error

    async def _ensure(self, wanted: StreamConfig) -> bool:
        """Make the stream, or adopt the one there is; true where it is another than the one that we knew."""
        try:
            info = await self._created_or_adopted(wanted)
        except ApiError as error:
            if error.err_code == CONSUMER_LIMIT_REACHED:
                least = limits.BROKER_MAX_CONSUMERS
                remedy = f"raise the account's max_consumers at the broker to {least:,} or more, or set none"
                raise _refused(wanted.name, f"the account allows fewer than {least:,} consumers", remedy) from error
            raise _refused(wanted.name, str(error), self._remedy(wanted, error)) from error
        if not self._takes_as_found:
            _accept(self._as_found(wanted, info.config), info.config)
        self._wanted[wanted.name] = wanted
        # The answer to a create says "created" of a stream that was there already; its birth tells the two apart.
        before = self._created.setdefault(wanted.name, info.created)
        self._created[wanted.name] = info.created
        return before != info.created

    async def _created_or_adopted(self, wanted: StreamConfig) -> StreamInfo:
        while True:
            try:
                return await self._api.stream_create(_begun(wanted))
            except ApiError as error:
                if error.err_code == STREAM_NAME_IN_USE:
                    return await self._adopt(wanted)
                half = wanted.max_bytes // 2
                if not lacks_room(error) or self._size_setting(wanted) or half < limits.STREAM_MIN_BYTES:
                    raise
            wanted = msgspec.structs.replace(wanted, max_bytes=half)
            _log.warning("stream_made_smaller", stream=wanted.name, bytes=half)

    async def _adopt(self, wanted: StreamConfig) -> StreamInfo:
        info = await self._api.stream_info(wanted.name)
        if info is None:
            raise _refused(wanted.name, "it exists and cannot be read")
        differences = stream_differences(self._as_found(wanted, info.config), info.config)
        if self._takes_as_found or not differences:
            return info
        if "num_replicas" in differences:
            raise _too_few_copies(wanted, info.config)
        if _NEVER_REPAIRED.intersection(differences):
            raise _refused(wanted.name, _told(differences))
        try:
            # What we do not know of (a placement, a mirror's rules) is its operator's and stays.
            changes = {name: want for name, (want, _) in differences.items()}
            repaired = await self._api.stream_change(wanted.name, changes)
        except ApiError as error:
            why = f"{_told(differences)}; {error.description}"
            raise _refused(wanted.name, why, self._remedy(wanted, error)) from error
        _log.warning("stream_repaired", stream=wanted.name, settings=_told(differences))
        return repaired

    def _as_found(self, wanted: StreamConfig, found: StreamConfig) -> StreamConfig:
        """``wanted``, of the size that the stream has where nobody asked for another."""
        if self._size_setting(wanted) or found.max_bytes <= 0:
            return wanted
        return msgspec.structs.replace(wanted, max_bytes=found.max_bytes)

    def _remedy(self, wanted: StreamConfig, error: ApiError) -> str:
        setting = self._size_setting(wanted)
        if awaits_peers(error):
            return f"start the other members of the cluster; stream.replicas asks for {wanted.num_replicas} copies"
        if lacks_room(error) and setting:
            return f"lower stream.{setting} in the node file, or give the broker more room"
        return _REMEDY

    def _size_setting(self, wanted: StreamConfig) -> str:
        """The setting that says how large this stream is to be; empty where nobody wrote it down."""
        if wanted.name == topics.STREAM_ADVISORIES:
            return ""
        setting = _SIZE_SETTINGS.get(wanted.name, "mailbox_max_bytes")
        return setting if getattr(self._config, setting) else ""


def _begun(wanted: StreamConfig) -> StreamConfig:
    """``wanted``, as it is made now.

    The journal's sequences begin with the microseconds of the day it is made: one that was lost and is made anew never
    comes back to a sequence that somebody remembers from the one before.
    """
    if wanted.name != topics.STREAM_JOURNAL:
        return wanted
    return msgspec.structs.replace(wanted, first_seq=int(SystemClock().now().timestamp() * 1_000_000))


def _mailboxes(name: str, subjects: list[str], config: QueueConfig, storage: Storage, max_bytes: int) -> StreamConfig:
    return StreamConfig(
        name=name,
        subjects=subjects,
        retention="interest",
        storage=storage,
        discard="new",
        max_bytes=max_bytes,
        num_replicas=config.replicas,
        # Unset, the broker stops at a thousand and drops the mail of every later seat without a word.
        max_consumers=limits.BROKER_MAX_CONSUMERS,
        duplicate_window=ns(limits.DUPLICATE_WINDOW_S),
    )


def _log_of(
    name: str, age_s: float, window_s: float, config: QueueConfig, storage: Storage, max_bytes: int
) -> StreamConfig:
    return StreamConfig(
        name=name,
        subjects=[topics.stream_subjects(name)],
        retention="limits",
        storage=storage,
        discard="old",
        max_bytes=max_bytes,
        num_replicas=config.replicas,
        max_consumers=limits.BROKER_MAX_CONSUMERS,
        max_age=ns(age_s),
        # The broker refuses a window longer than the age.
        duplicate_window=ns(min(window_s, age_s)),
    )


def _accept(wanted: StreamConfig, found: StreamConfig) -> None:
    differences = stream_differences(wanted, found)
    if differences:
        raise _refused(wanted.name, _told(differences))


def _told(differences: dict[str, tuple[object, object]]) -> str:
    return ", ".join(f"{name} is {have!r}, wanted {want!r}" for name, (want, have) in differences.items())


def _too_few_copies(wanted: StreamConfig, found: StreamConfig) -> StartRefused:
    return StartRefused(
        f"the stream {wanted.name} has {found.num_replicas} replica(s) and stream.replicas asks for"
        f" {wanted.num_replicas}",
        f"nats stream update {wanted.name} --replicas={wanted.num_replicas}",
    )


def _refused(stream: str, why: str, remedy: str = _REMEDY) -> StartRefused:
    return StartRefused(f"stream {stream} cannot be used: {why}", remedy)
