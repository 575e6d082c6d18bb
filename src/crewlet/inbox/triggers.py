"""From a delivered event to the trigger of a turn. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from crewlet.base.errors import CrewletError
from crewlet.base.ids import WorkKey
from crewlet.events import Event
from crewlet.events.types import A2aMessage, A2aRequest, ExternalNotification, TaskAssigned
from crewlet.inbox.contract import Reply, Trigger

__all__ = ["LEDGERED", "UnreadableTrigger", "trigger_of", "work_key_of"]

LEDGERED: Final = frozenset({"task_assigned", "external_notification", "a2a_request", "a2a_message"})
"""The closed set of types that run a turn and are therefore recorded as worked (S-119)."""


class UnreadableTrigger(CrewletError):
    """An event of a type that runs a turn, with a body that this build cannot read."""


def work_key_of(event_ids: Sequence[str]) -> WorkKey:
    """One unit of work's key: the same for the same constituents, whatever their order (S-087)."""
    digest = hashlib.sha256("\x00".join(sorted(event_ids)).encode()).hexdigest()
    return WorkKey(digest[:32])


def trigger_of(handle: str, event: Event, *, headroom: int) -> Trigger | None:
    """The trigger that ``event`` is for the seat, or ``None`` where an event of its type runs no turn.

    Raises ``UnreadableTrigger``: work that cannot be read is somebody's work all the same, and is not to be dropped.
    """
    body = event.data
    conversation = f"event:{event.id}"
    answers = ""
    match body:
        case ExternalNotification():
            reply, task = _reply(body.reply), body.body or body.salient_body
            conversation = body.conversation_identity or conversation
        case A2aRequest():
            reply, task, answers = Reply.ENGINE, body.brief, body.channel_id
        case A2aMessage():
            reply, task, answers = _reply(body.reply), body.task, body.answers_channel
        case TaskAssigned():
            reply, task = Reply.NONE, body.task
        case None if event.type in LEDGERED:
            raise UnreadableTrigger(f"the body of this {event.type} cannot be read")
        case _:
            return None
    return Trigger(
        handle=handle,
        events=(event,),
        work_key=work_key_of([event.id]),
        reply=reply,
        trace=event.trace,
        conversation_key=conversation,
        delegation_depth=event.delegation_depth,
        delegation_chain=event.delegation_chain,
        answers_channel=answers,
        task=task,
        headroom=headroom,
    )


def _reply(said: str) -> Reply:
    try:
        return Reply(said)
    except ValueError:
        raise UnreadableTrigger(f"reply: {said!r} is no obligation that this release knows") from None
