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
    """Most bytes of each of the two mailbox streams, of events, of nudges, of dead letters, of the journal."""

    mailboxes: int
    events: int
    nudges: int
    dead_letters: int
    journal: int

    @property
    def total(self) -> int:
        """All six streams together."""
        return 2 * self.mailboxes + self.events + self.nudges + self.dead_letters + self.journal


def shipped_room(config: QueueConfig, factor: float = 1.0) -> StreamRoom:
    """What is configured, as it is; of the rest what ships, smaller by ``factor`` where the broker has too little."""

    def part(size: int) -> int:
        return max(int(size * factor), limits.STREAM_MIN_BYTES)

    return StreamRoom(
        mailboxes=config.mailbox_max_bytes or part(limits.MAILBOX_STREAM_BYTES),
        events=config.event_max_bytes or part(limits.EVENT_STREAM_BYTES),
        nudges=config.config_max_bytes or part(limits.CONFIG_STREAM_BYTES),
        dead_letters=config.dead_letter_max_bytes or part(limits.DEAD_LETTER_STREAM_BYTES),
        journal=config.journal_max_bytes or part(limits.JOURNAL_STREAM_BYTES),
    )


async def find_room(api: JetStream, config: QueueConfig, storage: Storage) -> StreamRoom:
    """The shipped sizes, or as much of each as leaves the buckets their part of what the broker grants us.

    A size that is configured stays: whether the broker grants it is seen when the stream is made.

    An account's limit is in its information. A server's own is told to nobody but its operator, so a stream of the
    whole size and the reserve is asked for and deleted again. Raises ``Unavailable``, ``ApiError``.
    """
    wanted, least = shipped_room(config), shipped_room(config, 0.0)
    granted, factor = (await api.account_info()).limits.of(storage), 1.0
    if granted >= 0 and least != wanted:
        fits = granted * (1 - limits.BUCKETS_ROOM_FRACTION) / max(config.replicas, 1)
        factor = min(max((fits - least.total) / (wanted.total - least.total), 0.0), 1.0)
    room = shipped_room(config, factor)
    for _ in range(limits.STREAM_ROOM_HALVINGS_MAX):
        if room == least or await _is_granted(api, int(room.total / (1 - limits.BUCKETS_ROOM_FRACTION)), storage):
            break
        factor /= 2
        room = shipped_room(config, factor)
    if room != wanted:
        _log.warning("streams_made_smaller", wanted_bytes=wanted.total, bytes=room.total)
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
