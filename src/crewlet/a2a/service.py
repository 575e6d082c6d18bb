"""One agent asks another: a channel, a question on its inbox, one answer back, closed (S2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import structlog
from msgspec.structs import replace

from crewlet import topics
from crewlet.a2a.ids import answer_wake_id, channel_id_of, event_id_of, request_wake_id
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.ids import Ids
from crewlet.base.trace import Trace, child_of
from crewlet.coordination import Channel, Channels, ChannelStatus, opened
from crewlet.events import Body, Event, new_event
from crewlet.events.types import A2aChannelClosed, A2aChannelOpened, A2aMessage, A2aMessageSent, A2aRequest
from crewlet.tools import CallContext
from crewlet.tracing import Tracer

__all__ = ["A2aService", "Answer", "AnswerFate"]

_log = structlog.get_logger(__name__)

Publish = Callable[[str, Event], Awaitable[Event]]
_MILLISECOND: Final = timedelta(milliseconds=1)


class AnswerFate(StrEnum):
    """What became of an answer. ``CLOSED``: its ask was over, unanswered; ``UNKNOWN``: no record of such an ask."""

    SENT = "sent"
    CLOSED = "closed"
    UNKNOWN = "unknown"


class Answer:
    """What a turn answers an ask with, and which turn it was."""

    def __init__(
        self, *, responder: str, content: str, failed: bool, turn_id: str, work_key: str, trace: Trace
    ) -> None:
        self.responder = responder
        self.content = content if len(content) <= limits.ASK_ANSWER_MAX_CHARS else _cut(content)
        self.failed = failed
        self.turn_id = turn_id
        self.work_key = work_key
        self.trace = trace


def _cut(content: str) -> str:
    # An answer that no message can carry would bring its turn back until its deliveries are spent, unanswered.
    whole = len(content)
    return f"{content[: limits.ASK_ANSWER_MAX_CHARS]}\n\n(cut: the whole answer has {whole} characters)"


class A2aService:
    """Opens, answers and closes asks. Every id is derived: repeating any step changes nothing that it did before."""

    def __init__(
        self, *, channels: Channels, publish: Publish, clock: Clock, ids: Ids, tracer: Tracer | None = None
    ) -> None:
        self._channels = channels
        self._publish = publish
        self._clock = clock
        self._ids = ids
        self._tracer = tracer or Tracer(clock, ids)

    async def ask(self, context: CallContext, target: str, brief: str) -> Channel:
        """Record the ask, then put it on the target's inbox; returns the channel as it stands.

        The record comes first: it is what authorises an answer. The wake comes before the word of it, so that an ask
        that is told of will be answered: the run that replaces a killed one may ask something else, and nobody would
        come back to a channel whose wake was never sent. Raises ``Unavailable``, ``PayloadTooLarge``.
        """
        channel = await self._channels.open(self._new_channel(context, target, brief, at=await self._channels.now()))
        if channel.status is not ChannelStatus.CLOSED:
            await self._wake_target(context, channel)
        # Told of even where it is answered by now: the run that asked may have died before it could tell.
        said = {"turn_id": context.turn_id, "work_key": context.work_key}
        await self._record(
            A2aChannelOpened(
                channel_id=channel.channel_id,
                requester=context.handle,
                target=target,
                participants=channel.participants,
                **said,
            ),
            channel,
            context.trace,
            source=context.handle,
        )
        await self._record(
            A2aMessageSent(
                channel_id=channel.channel_id, sender=context.handle, recipient=target, content=brief, **said
            ),
            channel,
            context.trace,
            source=context.handle,
            step="asked",
        )
        return channel

    async def answer(self, channel_id: str, answer: Answer) -> AnswerFate:
        """Record the answer, wake the asker with it, close the channel; or say why it was not sent.

        Raises ``Unavailable``; repeated, it goes on where it stopped.
        """
        channel = await self._channels.answer(
            channel_id,
            at=await self._channels.now(),
            answer_event_id=answer_wake_id(channel_id),
            turn_id=answer.turn_id,
        )
        if channel is None:
            # The record of a closed ask is kept for this: gone with its close, it would read like a mistyped id.
            fate = AnswerFate.UNKNOWN if await self._channels.get(channel_id) is None else AnswerFate.CLOSED
            _log.warning("a2a_answer_refused", channel_id=channel_id, responder=answer.responder, reason=fate)
            return fate
        if channel.status is ChannelStatus.CLOSED and channel.closed_by:
            return AnswerFate.SENT
        # One that maintenance closed, its answer recorded and its asker perhaps not woken, goes on where it stopped.
        await self._record(
            A2aMessageSent(
                channel_id=channel_id,
                sender=answer.responder,
                recipient=channel.requester,
                content=answer.content,
                turn_id=answer.turn_id,
                work_key=answer.work_key,
            ),
            channel,
            answer.trace,
            source=answer.responder,
            step="answered",
        )
        await self._wake_asker(channel, answer)
        await self._close(channel, answer)
        return AnswerFate.SENT

    @staticmethod
    def _new_channel(context: CallContext, target: str, brief: str, *, at: datetime) -> Channel:
        fresh = opened(
            channel_id=channel_id_of(context, target, brief),
            requester=context.handle,
            target=target,
            at=at,
            brief=brief,
            trace_id=context.trace.trace_id,
            turn_id=context.turn_id,
        )
        return replace(
            fresh,
            task=context.task[: limits.ASK_TASK_TEXT_MAX_CHARS],
            answers_channel=context.answers_channel,
            reply=context.reply,
            delegation_depth=context.delegation_depth,
            delegation_chain=context.delegation_chain,
        )

    async def _wake_target(self, context: CallContext, channel: Channel) -> None:
        wake = new_event(
            A2aRequest(
                channel_id=channel.channel_id, requester=channel.requester, target=channel.target, brief=channel.brief
            ),
            trace=child_of(context.trace, self._ids),
            now=self._clock.now(),
            ids=self._ids,
            event_id=request_wake_id(channel.channel_id),
            source=channel.requester,
            delegation_depth=context.delegation_depth + 1,
            parent_turn_id=context.turn_id,
            delegation_chain=(*context.delegation_chain, context.handle),
        )
        with self._tracer.span("inbox.wake", wake.trace, seat=channel.target):
            await self._publish(topics.agent_inbox(channel.target), wake)

    async def _wake_asker(self, channel: Channel, answer: Answer) -> None:
        wake = new_event(
            A2aMessage(
                channel_id=channel.channel_id,
                requester=channel.requester,
                responder=answer.responder,
                brief=channel.brief,
                content=answer.content,
                failed=answer.failed,
                task=channel.task,
                answers_channel=channel.answers_channel,
                reply=channel.reply,
            ),
            trace=child_of(answer.trace, self._ids),
            now=self._clock.now(),
            ids=self._ids,
            event_id=answer_wake_id(channel.channel_id),
            source=answer.responder,
            delegation_depth=channel.delegation_depth,
            parent_turn_id=answer.turn_id,
            delegation_chain=channel.delegation_chain,
        )
        with self._tracer.span("inbox.wake", wake.trace, seat=channel.requester):
            await self._publish(topics.agent_inbox(channel.requester), wake)

    async def _close(self, channel: Channel, answer: Answer) -> None:
        closed = await self._channels.close(
            channel.channel_id, at=await self._channels.now(), by=answer.responder, turn_id=answer.turn_id
        )
        if closed is None or closed.closed_at is None:
            return
        # The record's own instants, by the store's clock: the difference of two machines' clocks is no duration.
        duration_ms = (closed.closed_at - closed.opened_at) // _MILLISECOND
        await self._record(
            A2aChannelClosed(
                channel_id=closed.channel_id,
                participants=closed.participants,
                message_count=closed.message_count,
                duration_ms=duration_ms,
                closed_by=closed.closed_by,
                turn_id=answer.turn_id,
                work_key=answer.work_key,
            ),
            closed,
            answer.trace,
            source=answer.responder,
        )

    async def _record(self, body: Body, channel: Channel, trace: Trace, *, source: str, step: str = "") -> None:
        event = new_event(
            body,
            trace=child_of(trace, self._ids),
            now=self._clock.now(),
            ids=self._ids,
            event_id=event_id_of(channel.channel_id, step or body.event_type),
            source=source,
        )
        await self._publish(topics.event_topic(event.type), event)
