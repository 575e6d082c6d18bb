"""Which provider credentials rest, and until when: what one node learned at a vendor's hands, all others know (S0)."""

from __future__ import annotations

import asyncio
from datetime import datetime

import structlog
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, list_stored

__all__ = ["Cooldown", "Cooldowns", "extended"]

_log = structlog.get_logger(__name__)

_CLASS = "credential"


class Cooldown(SharedRecord, frozen=True, kw_only=True):
    """One key of one provider entry rests until an instant; read late or often, it still ends then (C-098).

    ``hint`` tells the key from others and is all that is shared of it: 12 hex digits of its SHA-256 (C-102). The same
    key under another entry is another record (C-101).
    """

    provider_key: str
    hint: str
    until: datetime
    reason: str
    reported_by: str


def extended(standing: Cooldown | None, wanted: Cooldown) -> Cooldown:
    """The one of the two that ends later: a cooldown is never shortened."""
    if standing is None:
        return wanted
    if standing.until >= wanted.until:
        return standing
    return replace(wanted, unknown={**standing.unknown, **wanted.unknown})


class Cooldowns:
    """The cooldowns of the fleet.

    What cannot be written is let be and logged: the node that benched the key knows, its peers find out for themselves.
    What cannot be read says nothing of any key: a listing raises ``Unavailable``, and nobody un-benches one over it.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._tasks = Tasks("cooldowns")

    async def publish(self, cooldown: Cooldown) -> None:
        """The fleet knows of the cooldown; returns within ``limits.COOLDOWN_PUBLISH_WAIT_S`` and raises nothing.

        The write goes on where its caller is cancelled: the call it belongs to is over, what it learned is not.
        """
        await asyncio.wait((self._tasks.start("publish", self._publish(cooldown)),))

    async def all(self) -> list[Cooldown]:
        """Every cooldown on record, those that have ended not taken out. Raises ``Unavailable``."""
        return [each.record for each in await list_stored(self._store, Cooldown, f"{_CLASS}.>")]

    async def close(self) -> None:
        """End the writes that still go on."""
        await self._tasks.close()

    async def _publish(self, cooldown: Cooldown) -> None:
        key = f"{_CLASS}.{key_token(cooldown.provider_key)}.{key_token(cooldown.hint)}"
        try:
            async with asyncio.timeout(limits.COOLDOWN_PUBLISH_WAIT_S):
                await change_stored(self._store, Cooldown, key, lambda standing: extended(standing, cooldown))
        except (Unavailable, TimeoutError) as error:
            _log.warning(
                "cooldown_not_published",
                provider=cooldown.provider_key,
                hint=cooldown.hint,
                error=str(error) or "no answer in time",
            )
