"""Ids of an ask and of everything that it sends, derived, so that a repeat is the same ask. Pure."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

from crewlet.tools import CallContext

__all__ = ["answer_wake_id", "channel_id_of", "event_id_of", "request_wake_id"]

_ASKS: Final = UUID("6f1c1c52-9a36-5f0c-8a62-0d6f4f6f2b11")


def channel_id_of(context: CallContext, target: str, brief: str) -> str:
    """The channel of one ask: the same for the same work, target, brief and place among the turn's asks."""
    work = context.work_key or context.turn_id
    return str(uuid5(_ASKS, "\x00".join((context.handle, work, target, str(context.ordinal), brief))))


def request_wake_id(channel_id: str) -> str:
    """The id of the wake that carries the ask to its target."""
    return event_id_of(channel_id, "a2a_request")


def answer_wake_id(channel_id: str) -> str:
    """The id of the wake that carries the answer back."""
    return event_id_of(channel_id, "a2a_message")


def event_id_of(channel_id: str, step: str) -> str:
    """The id of the event that one step of the ask publishes."""
    return str(uuid5(_ASKS, f"{channel_id}\x00{step}"))
