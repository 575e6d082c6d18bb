"""The chat thread around a message, read when its turn begins: what the turn is shown, and what it answers with it."""

from __future__ import annotations

import asyncio

import structlog

from crewlet.base import limits
from crewlet.events.types import ExternalNotification
from crewlet.inbox.contract import Trigger
from crewlet.inbox.message_keys import ledger_key, message_key_of
from crewlet.notify import Sources, ThreadBlock, notice_of, thread_block

__all__ = ["thread_around"]

_log = structlog.get_logger(__name__)
_UNREAD = "(The thread could not be read just now: what was said in it before is not shown here.)"


async def thread_around(trigger: Trigger, sources: Sources) -> ThreadBlock | None:
    """What to show of the thread, its waiting messages under the ledger's keys; ``None`` where there is none.

    It is not waited for long: an unreadable thread is said to be one, and nothing in it counts as answered.
    """
    body = trigger.told.data
    reader = sources.threads(body.integration) if isinstance(body, ExternalNotification) else None
    if reader is None or not isinstance(body, ExternalNotification):
        return None
    try:
        async with asyncio.timeout(limits.THREAD_READ_TIMEOUT_S):
            posts = await reader.read(trigger.handle, notice_of(body))
    except Exception as error:  # noqa: BLE001 - supervisor: whatever a source fails with costs the turn its thread alone
        _log.warning("thread_unread", seat=trigger.handle, integration=body.integration, error=repr(error))
        return ThreadBlock(_UNREAD)
    if not posts:
        return None
    woken_by = frozenset(key for event in trigger.events if (key := message_key_of(event, sources)))
    block = thread_block(posts, woken_by=woken_by, max_bytes=limits.THREAD_BLOCK_MAX_BYTES)
    return ThreadBlock(block.text, tuple(ledger_key(body.integration, key) for key in block.waiting))
