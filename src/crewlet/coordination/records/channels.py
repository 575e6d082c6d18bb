"""Channels between two agents: one ask, one answer, and the record that authorises it (S2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination.contract import RecordStore, Revision
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord, encode_record
from crewlet.coordination.records.stored import Stored, change_stored, list_stored, read_stored

__all__ = ["Channel", "ChannelStatus", "Channels", "answered", "closed", "is_idle", "opened"]


class ChannelStatus(StrEnum):
    """Where an ask stands: waiting, answered and not closed yet, or over."""

    OPEN = "open"
    ANSWERED = "answered"
    CLOSED = "closed"


class Channel(SharedRecord, frozen=True, kw_only=True):
    """One ask. ``closed_by`` and the turn ids are empty where no seat's turn was behind the step.

    ``task``, ``answers_channel``, ``reply`` and the delegation fields are the asking turn's own: the answer wakes a
    turn that takes them up again.
    """

    channel_id: str
    requester: str
    target: str
    participants: tuple[str, ...]
    status: ChannelStatus
    message_count: int
    opened_at: datetime
    last_activity: datetime
    brief: str = ""
    trace_id: str = ""
    opened_turn_id: str = ""
    task: str = ""
    answers_channel: str = ""
    reply: str = "none"
    delegation_depth: int = 0
    delegation_chain: tuple[str, ...] = ()
    answered_at: datetime | None = None
    answered_turn_id: str = ""
    answer_event_id: str = ""
    closed_at: datetime | None = None
    closed_by: str = ""
    closed_turn_id: str = ""


def opened(
    *,
    channel_id: str,
    requester: str,
    target: str,
    at: datetime,
    brief: str = "",
    trace_id: str = "",
    turn_id: str = "",
) -> Channel:
    """A channel whose ask has just been sent."""
    return Channel(
        channel_id=channel_id,
        requester=requester,
        target=target,
        participants=(requester, target),
        status=ChannelStatus.OPEN,
        message_count=1,
        opened_at=at,
        last_activity=at,
        brief=brief,
        trace_id=trace_id,
        opened_turn_id=turn_id,
    )


def answered(channel: Channel, *, at: datetime, answer_event_id: str, turn_id: str = "") -> Channel | None:
    """The channel with its answer sent; unchanged where this very answer was sent before, ``None`` for a second one."""
    if channel.answer_event_id == answer_event_id:
        return channel
    if channel.status is not ChannelStatus.OPEN:
        return None
    return replace(
        channel,
        status=ChannelStatus.ANSWERED,
        message_count=channel.message_count + 1,
        answered_at=_later(channel, at),
        last_activity=_later(channel, at),
        answer_event_id=answer_event_id,
        answered_turn_id=turn_id,
    )


def closed(channel: Channel, *, at: datetime, by: str = "", turn_id: str = "") -> Channel:
    """The channel, over; the first close stands."""
    if channel.status is ChannelStatus.CLOSED:
        return channel
    return replace(
        channel,
        status=ChannelStatus.CLOSED,
        closed_at=_later(channel, at),
        last_activity=_later(channel, at),
        closed_by=by,
        closed_turn_id=turn_id,
    )


def is_idle(channel: Channel, *, since: datetime) -> bool:
    """Whether nothing happened on a channel that is not closed after ``since``."""
    return channel.status is not ChannelStatus.CLOSED and channel.last_activity <= since


class Channels:
    """The channels of the company. Every verb may raise ``Unavailable``; nothing here fails open or closed by itself.

    The ids are derived from the ask, so a repeat of any verb is harmless.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def now(self) -> datetime:
        """The time that a channel's instants are written in: the store's, which is one clock for both its ends."""
        return (await self._store.time()).earliest

    async def open(self, channel: Channel) -> Channel:
        """The channel is recorded; returns what stands, which is an earlier record where this is a repeat.

        Raises ``Conflict`` where the id stands for another pair of participants.
        """
        key = _key(channel.channel_id)
        for _ in range(limits.RECORD_CHANGE_ATTEMPTS_MAX):
            try:
                await self._store.create(key, encode_record(channel))
            except Conflict:
                standing = await self.get(channel.channel_id)
                if standing is None:
                    continue
                if standing.participants != channel.participants:
                    raise
                return standing
            else:
                return channel
        raise Unavailable(f"channel {channel.channel_id} changed under every attempt to open it")

    async def get(self, channel_id: str) -> Channel | None:
        """The channel as it stands, or ``None`` where there is none (any more)."""
        standing = await read_stored(self._store, Channel, _key(channel_id))
        return None if standing is None else standing.record

    async def answer(self, channel_id: str, *, at: datetime, answer_event_id: str, turn_id: str = "") -> Channel | None:
        """The answer is recorded; ``None`` where it is refused: no such channel, another answer, or a close stands."""
        return await self._change(
            channel_id, lambda channel: answered(channel, at=at, answer_event_id=answer_event_id, turn_id=turn_id)
        )

    async def close(self, channel_id: str, *, at: datetime, by: str = "", turn_id: str = "") -> Channel | None:
        """The channel is over; ``None`` where there is no such channel."""
        return await self._change(channel_id, lambda channel: closed(channel, at=at, by=by, turn_id=turn_id))

    async def idle(self, *, since: datetime) -> list[Stored[Channel]]:
        """Every channel that is not closed and on which nothing happened after ``since``."""
        return [each for each in await self._every() if is_idle(each.record, since=since)]

    async def close_idle(self, channel_id: str, *, since: datetime, at: datetime) -> Channel | None:
        """The channel is over, for nobody; ``None`` where it is gone, or something happened on it after ``since``."""
        return await self._change(
            channel_id, lambda channel: closed(channel, at=at) if is_idle(channel, since=since) else None
        )

    async def closed(self, *, before: datetime) -> list[Stored[Channel]]:
        """Every channel that was closed before this."""
        return [
            each for each in await self._every() if each.record.closed_at is not None and each.record.closed_at < before
        ]

    async def remove(self, channel_id: str, *, expected: Revision) -> None:
        """The record that was read is gone; an absent one is no error. Raises ``Conflict`` where it changed since."""
        await self._store.delete(_key(channel_id), expected=expected)

    async def _every(self) -> list[Stored[Channel]]:
        return await list_stored(self._store, Channel, "channel.>")

    async def _change(self, channel_id: str, step: Callable[[Channel], Channel | None]) -> Channel | None:
        changed = await change_stored(
            self._store, Channel, _key(channel_id), lambda standing: None if standing is None else step(standing)
        )
        return None if changed is None else changed.record


def _later(channel: Channel, at: datetime) -> datetime:
    # Two nodes take part and their clocks differ: no step is dated before the one that it follows.
    return max(at, channel.last_activity)


def _key(channel_id: str) -> str:
    return f"channel.{key_token(channel_id)}"
