"""How many bytes each stream of the queue may hold, so that the buckets beside them always have room."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from crewlet import topics
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, Storage, StreamConfig, lacks_room
from crewlet.base import limits
from crewlet.queue import QueueConfig

__all__ = ["StreamRoom", "find_room", "shipped_room"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRoom:
    """Most bytes of each of the two mailbox streams, of events, of configuration nudges, of dead letters."""

    mailboxes: int
    events: int
    nudges: int
    dead_letters: int

    @property
    def total(self) -> int:
        """All five streams together."""
        return 2 * self.mailboxes + self.events + self.nudges + self.dead_letters

    def scaled(self, factor: float) -> StreamRoom:
        """Smaller by ``factor``, but for a floor."""

        def part(size: int) -> int:
            return max(int(size * factor), limits.STREAM_MIN_BYTES)

        return StreamRoom(
            mailboxes=part(self.mailboxes),
            events=part(self.events),
            nudges=part(self.nudges),
            dead_letters=part(self.dead_letters),
        )


def shipped_room(config: QueueConfig) -> StreamRoom:
    """What is wanted where the broker has enough: what is configured, else what ships."""
    return StreamRoom(
        mailboxes=config.mailbox_max_bytes or limits.MAILBOX_STREAM_BYTES,
        events=config.event_max_bytes or limits.EVENT_STREAM_BYTES,
        nudges=config.config_max_bytes or limits.CONFIG_STREAM_BYTES,
        dead_letters=config.dead_letter_max_bytes or limits.DEAD_LETTER_STREAM_BYTES,
    )


async def find_room(api: JetStream, config: QueueConfig, storage: Storage) -> StreamRoom:
    """The shipped sizes, or as much of each as leaves the buckets their part of what the broker grants us.

    An account's limit is in its information. A server's own is told to nobody but its operator, so a stream of the
    whole size and the reserve is asked for and deleted again. Raises ``Unavailable``, ``ApiError``.
    """
    room = shipped_room(config)
    granted = (await api.account_info()).limits.of(storage)
    if granted >= 0:
        fits = granted * (1 - limits.BUCKETS_ROOM_FRACTION) / max(config.replicas, 1)
        room = room.scaled(min(1.0, fits / room.total))
    for _ in range(limits.STREAM_ROOM_HALVINGS_MAX):
        if await _is_granted(api, int(room.total / (1 - limits.BUCKETS_ROOM_FRACTION)), storage):
            break
        room = room.scaled(0.5)
    if room != shipped_room(config):
        _log.warning("streams_made_smaller", wanted_bytes=shipped_room(config).total, bytes=room.total)
    return room


async def _is_granted(api: JetStream, size: int, storage: Storage) -> bool:
    probe = StreamConfig(
        name=topics.STREAM_ROOM_PROBE, subjects=[f"{topics.STREAM_ROOM_PROBE}.>"], storage=storage, max_bytes=size
    )
    try:
        await api.stream_create(probe)
    except ApiError as error:
        if lacks_room(error):
            return False
        # Another node asks the same at this moment, or an account counts its streams: no answer either way.
        _log.debug("room_unknown", error=str(error))
        return True
    await api.stream_delete(topics.STREAM_ROOM_PROBE)
    return True
