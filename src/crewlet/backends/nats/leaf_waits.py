"""Waiting until a satellite reaches the streams: those who keep them have made them, and say how they are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from crewlet import topics
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, StreamInfo, ns
from crewlet.backends.nats.patience import Patience
from crewlet.backends.nats.wire import Wire
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable

__all__ = ["MembersStreams", "wait_for_members"]

_log = structlog.get_logger(__name__)
_REFUSED: Final = "Authorization Violation"
_OTHER_SECRET: Final = "stream.leaf.secret must be the same as in the file of the node that keeps the streams"  # noqa: S105


@dataclass(frozen=True, slots=True)
class MembersStreams:
    """How the streams are kept by those who made them; a satellite goes by that."""

    replicas: int
    event_retention_s: float


async def wait_for_members(
    wire: Wire,
    *,
    members: Sequence[str],
    streams: Collection[str],
    last_words: Callable[[], Awaitable[list[str]]],
    timeout_s: float = limits.LEAF_MEMBERS_WAIT_S,
) -> MembersStreams:
    """Return once all of ``streams`` are within reach, which the satellite does not make itself.

    Raises ``StartRefused`` after ``timeout_s``, and soon where the members say that the secret is another.
    """
    api = JetStream(wire, timeout_s=limits.CLUSTER_ASK_S)
    patience = Patience(timeout_s)
    while True:
        try:
            found = {info.config.name: info for info in await api.stream_infos()}
            missing = [name for name in streams if name not in found]
            if not missing:
                if patience.has_spoken:
                    _log.info("satellite_reaches_members")
                return _kept(found[topics.STREAM_EVENTS])
            reason = f"they have not made {missing[0]} yet"
        except (Unavailable, ApiError) as error:
            reason = str(error)
        is_refused = _was_refused(await last_words())
        if is_refused and patience.waited_s > limits.LEAF_REFUSED_AFTER_S:
            raise StartRefused(f"none of {', '.join(members)} takes this satellite: another secret", _OTHER_SECRET)
        if patience.is_over():
            raise StartRefused(
                f"the streams of {', '.join(members)} were not within reach in {timeout_s:g} s: {reason}",
                "start a node that keeps them, with `stream.leaf.port`, and see that this machine reaches that port",
            )
        if patience.speaks():
            hint = _OTHER_SECRET if is_refused else reason
            _log.warning("satellite_awaiting_members", members=list(members), hint=hint)
        await asyncio.sleep(limits.CLUSTER_ASK_PAUSE_S)


def _kept(events: StreamInfo) -> MembersStreams:
    return MembersStreams(replicas=events.config.num_replicas, event_retention_s=events.config.max_age / ns(1))


def _was_refused(words: Iterable[str]) -> bool:
    return any(_REFUSED in line for line in words)
