"""Several notifications of one conversation merged into one (E-097 to E-101). Pure but for the sources' words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID, uuid5

import structlog

from crewlet.base.errors import CrewletError
from crewlet.events import Event
from crewlet.events.types import ExternalNotification, NotificationMessage
from crewlet.inbox.contract import Reply
from crewlet.inbox.digest_text import Said, digest_text
from crewlet.notify import Prompt, Sources, notice_of

__all__ = ["Unmergeable", "merged"]

_log = structlog.get_logger(__name__)
_DIGESTS: Final = UUID("4f2f0c52-7f3e-5f0c-9c38-0d1a5b6c7e10")
_STRENGTH: Final = [Reply.NONE, Reply.TOOL, Reply.ENGINE]


class Unmergeable(CrewletError):
    """Events of one partition that cannot become one, for one of them that its own source cannot make sense of."""


def merged(events: Sequence[Event], sources: Sources, *, work_key: str) -> Event:
    """One notification that says what all of ``events`` say, oldest first.

    Its id follows from the work, its trace is the first one's, its delegation the deepest one's: merging must not
    launder a depth. Raises ``Unmergeable``.
    """
    try:
        bodies = [_notification(event) for event in events]
        return _merged(events, bodies, sources.prompt(bodies[-1].integration), work_key)
    except Exception as fault:
        _log.exception("notifications_not_merged", events=[event.id for event in events])
        raise Unmergeable(f"{len(events)} notifications cannot be merged: {fault}") from fault


def _merged(events: Sequence[Event], bodies: Sequence[ExternalNotification], prompt: Prompt, work_key: str) -> Event:
    first, newest = events[0], bodies[-1]
    said = [_said(event.timestamp, body, prompt) for event, body in zip(events, bodies, strict=True)]
    deepest = max(events, key=lambda event: event.delegation_depth)
    strongest = max(bodies, key=lambda body: _STRENGTH.index(Reply(body.reply)))
    notification = ExternalNotification(
        integration=newest.integration,
        agent_handle=newest.agent_handle,
        agent_id=newest.agent_id,
        notification_type=newest.notification_type,
        sender=newest.sender,
        salient_body=newest.salient_body,
        body=digest_text(said[:-1], said[-1], newest.body or newest.salient_body),
        metadata=newest.metadata,
        requires_recon=any(body.requires_recon for body in bodies),
        addressed=any(body.addressed for body in bodies),
        reply=strongest.reply,
        owes=strongest.owes,
        partition_key=newest.partition_key,
        conversation_identity=newest.conversation_identity,
        trigger_position=next((body.trigger_position for body in reversed(bodies) if body.trigger_position), ""),
        messages=tuple(_message(event, body) for event, body in zip(events, bodies, strict=True)),
    )
    return Event(
        id=str(uuid5(_DIGESTS, work_key)),
        type=notification.event_type,
        timestamp=events[-1].timestamp,
        source=first.source,
        node=first.node,
        trace_id=first.trace_id,
        span_id=first.span_id,
        parent_span_id=first.parent_span_id,
        delegation_depth=deepest.delegation_depth,
        parent_turn_id=deepest.parent_turn_id,
        delegation_chain=deepest.delegation_chain,
        data=notification,
    )


def _notification(event: Event) -> ExternalNotification:
    if not isinstance(event.data, ExternalNotification):
        raise Unmergeable(f"{event.type} {event.id} is no notification")
    return event.data


def _said(at: datetime, body: ExternalNotification, prompt: Prompt) -> Said:
    notice = notice_of(body)
    return Said(at=at, sender=body.sender, whole=notice.body, digest=prompt.digest_body(notice))


def _message(event: Event, body: ExternalNotification) -> NotificationMessage:
    return NotificationMessage(
        event_id=event.id,
        sender=body.sender,
        salient_body=body.salient_body,
        notification_type=body.notification_type,
        timestamp=event.timestamp,
        metadata=body.metadata,
        requires_recon=body.requires_recon,
        trace_id=event.trace_id,
        span_id=event.span_id,
    )
