"""The second key of the ledger: a chat message as its chat knows it, since a later turn may have answered it (S1)."""

from __future__ import annotations

import structlog

from crewlet.events import Event
from crewlet.events.types import ExternalNotification
from crewlet.notify import Sources, notice_of

__all__ = ["ledger_key", "ledger_key_of", "message_key_of"]

_log = structlog.get_logger(__name__)


def ledger_key(source: str, message_key: str) -> str:
    """What the ledger knows a source's chat message by."""
    return f"chat:{source}:{message_key}"


def ledger_key_of(event: Event, sources: Sources) -> str:
    """The ledger's key of the chat message that an event brought; empty for anything else."""
    key = message_key_of(event, sources)
    return ledger_key(event.data.integration, key) if key and isinstance(event.data, ExternalNotification) else ""


def message_key_of(event: Event, sources: Sources) -> str:
    """What the source knows the message by that an event brought; empty where it is none of a chat."""
    body = event.data
    if not isinstance(body, ExternalNotification):
        return ""
    try:
        return sources.prompt(body.integration).message_key(notice_of(body))
    except Exception:  # noqa: BLE001 - supervisor: a source's fault costs the event this key, not its turn
        _log.exception("message_key_failed", integration=body.integration, event_id=event.id)
        return ""
