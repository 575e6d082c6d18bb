"""Putting an event back into its mailbox: the same event to whoever knows its id, another message to the broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crewlet.events import Event

__all__ = ["message_identity", "put_back"]

_PUT_BACK: Final = "put_back"


def put_back(event: Event) -> Event:
    """The event as it is published again while its first message is still there.

    It keeps its id, which the completion ledger knows it by. Without the mark the broker would take the publish for a
    repeat and store nothing, and the acknowledgement of the first message would then lose the event.
    """
    return replace(event, payload={**event.payload, _PUT_BACK: True})


def message_identity(event: Event) -> str:
    """What a queue knows one publish of the event by; a repeat of it is stored once."""
    return f"{event.id}.{_PUT_BACK}" if event.payload.get(_PUT_BACK) is True else event.id
