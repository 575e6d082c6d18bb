"""What becomes of asks that no turn ended: closed after an idle hour, forgotten a week after their close (S2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog

from crewlet import topics
from crewlet.a2a.ids import event_id_of
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict
from crewlet.base.fence import Fence
from crewlet.base.ids import Ids
from crewlet.base.trace import Trace, child_of
from crewlet.coordination import Channel, Channels
from crewlet.events import Event, new_event
from crewlet.events.types import A2aChannelClosed

__all__ = ["ChannelSweep"]

_log = structlog.get_logger(__name__)

_MILLISECOND: Final = timedelta(milliseconds=1)


class ChannelSweep:
    """Both halves of it.

    A close that could not be told is told by a later tick of this process; where the process died before it could, the
    close stands in the record alone.
    """

    def __init__(
        self, *, channels: Channels, publish: Callable[[str, Event], Awaitable[Event]], clock: Clock, ids: Ids
    ) -> None:
        self._channels = channels
        self._publish = publish
        self._clock = clock
        self._ids = ids
        self._untold: dict[str, Channel] = {}

    async def run(self, fence: Fence) -> None:
        """One tick. Raises ``Unavailable``; the next tick goes on."""
        now = await self._channels.now()
        idle_since = now - timedelta(seconds=limits.CHANNEL_IDLE_MAX_S)
        for each in await self._channels.idle(since=idle_since):
            fence.check()
            closed = await self._channels.close_idle(each.record.channel_id, since=idle_since, at=now)
            if closed is not None and not closed.closed_by:
                self._untold[closed.channel_id] = closed
                _log.info("a2a_channel_closed_idle", channel_id=closed.channel_id)
                await self._tell(closed)
        for channel in [*self._untold.values()]:
            await self._tell(channel)
        for each in await self._channels.closed(before=now - timedelta(seconds=limits.CHANNEL_CLOSED_KEPT_S)):
            fence.check()
            try:
                await self._channels.remove(each.record.channel_id, expected=each.revision)
            except Conflict:
                _log.info("a2a_channel_kept", channel_id=each.record.channel_id, reason="record changed")

    async def _tell(self, channel: Channel) -> None:
        """The event of a close behind which there is no participant and no turn."""
        assert channel.closed_at is not None
        body = A2aChannelClosed(
            channel_id=channel.channel_id,
            participants=channel.participants,
            message_count=channel.message_count,
            duration_ms=(channel.closed_at - channel.opened_at) // _MILLISECOND,
        )
        event = new_event(
            body,
            trace=child_of(Trace(channel.trace_id, ""), self._ids),
            now=self._clock.now(),
            ids=self._ids,
            event_id=event_id_of(channel.channel_id, body.event_type),
        )
        await self._publish(topics.event_topic(event.type), event)
        self._untold.pop(channel.channel_id, None)
