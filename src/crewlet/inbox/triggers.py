"""From the events of one partition to the trigger of a turn. Pure but for the sources' words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from crewlet.base.errors import CrewletError
from crewlet.base.ids import WorkKey
from crewlet.events import Event
from crewlet.events.types import A2aMessage, A2aRequest, ExternalNotification, TaskAssigned
from crewlet.inbox.contract import Reply, Trigger
from crewlet.inbox.digest import merged
from crewlet.inbox.partitions import conversation_of
from crewlet.notify import Sources

__all__ = ["LEDGERED", "UnreadableTrigger", "runs_turn", "trigger_of", "work_key_of"]

LEDGERED: Final = frozenset({"task_assigned", "external_notification", "a2a_request", "a2a_message"})
"""The closed set of types that run a turn and are therefore recorded as worked (S-119)."""


class UnreadableTrigger(CrewletError):
    """An event of a type that runs a turn, with a body that this build cannot read."""


def runs_turn(event: Event) -> bool:
    """Whether an event is work; anything else on an inbox is dropped, and never counts as worked."""
    return event.type in LEDGERED


def work_key_of(event_ids: Sequence[str]) -> WorkKey:
    """One unit of work's key: the same for the same constituents, whatever their order (S-087)."""
    digest = hashlib.sha256("\x00".join(sorted(event_ids)).encode()).hexdigest()
    return WorkKey(digest[:32])


def trigger_of(handle: str, events: Sequence[Event], sources: Sources, *, headroom: int) -> Trigger:
    """The trigger that ``events``, oldest first, are for the seat: several become one by a digest.

    The key comes from the events themselves, so that it is the same whatever the digest is. Raises
    ``UnreadableTrigger`` (work that cannot be read is somebody's work all the same, and is not to be dropped) and
    ``Unmergeable``.
    """
    work_key = work_key_of([event.id for event in events])
    digest = merged(events, sources, work_key=work_key) if len(events) > 1 else None
    told = digest or events[0]
    reply, task, answers = _asked(told)
    return Trigger(
        handle=handle,
        events=tuple(events),
        digest=digest,
        work_key=work_key,
        reply=reply,
        trace=events[0].trace,
        conversation_key=conversation_of(told),
        delegation_depth=told.delegation_depth,
        delegation_chain=told.delegation_chain,
        answers_channel=answers,
        task=task,
        headroom=headroom,
    )


def _asked(event: Event) -> tuple[Reply, str, str]:
    """Who is owed what, for what, and on which ask."""
    match event.data:
        case ExternalNotification() as body:
            return _reply(body.reply), body.body or body.salient_body, ""
        case A2aRequest() as body:
            return Reply.ENGINE, body.brief, body.channel_id
        case A2aMessage() as body:
            return _reply(body.reply), body.task, body.answers_channel
        case TaskAssigned() as body:
            return Reply.NONE, body.task, ""
        case _:
            raise UnreadableTrigger(f"the body of this {event.type} cannot be read")


def _reply(said: str) -> Reply:
    try:
        return Reply(said)
    except ValueError:
        raise UnreadableTrigger(f"reply: {said!r} is no obligation that this release knows") from None
