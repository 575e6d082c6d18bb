"""Learning what credentials rest from the fleet: at once, then every now and then, never in front of a call (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination.records.cooldowns import Cooldown, Cooldowns

__all__ = ["CooldownPull"]

_log = structlog.get_logger(__name__)


class CooldownPull:
    """Hands each cooldown that has not ended to ``learn``, which benches the key here and says whether that was news.

    What is news is logged as ``credential_cooled_by_peer``: the one answer to why a key rests on a node that never saw
    it fail. A pull only ever hands on; that a key has no record says nothing of it (C-099).
    """

    def __init__(self, cooldowns: Cooldowns, learn: Callable[[Cooldown], bool], clock: Clock) -> None:
        self._cooldowns = cooldowns
        self._learn = learn
        self._clock = clock

    async def run(self) -> None:
        """Pull at once and every ``limits.COOLDOWNS_PULLED_EVERY_S`` from then on, until cancelled."""
        await self.pull()
        await self.keep()

    async def keep(self) -> None:
        """The same for whoever has pulled by itself: the next pull comes an interval later."""
        while True:
            await asyncio.sleep(limits.COOLDOWNS_PULLED_EVERY_S)
            await self.pull()

    async def pull(self) -> None:
        """Pull once. Where the store cannot be read, nothing happens but a line in the log (C-100)."""
        try:
            async with asyncio.timeout(limits.COOLDOWNS_PULLED_EVERY_S):
                cooldowns = await self._cooldowns.all()
        except (Unavailable, TimeoutError) as error:
            _log.warning("cooldowns_unreadable", error=str(error) or "no answer in time")
            return
        now = self._clock.now()
        for cooldown in cooldowns:
            if cooldown.until > now and self._learn(cooldown):
                _log.info(
                    "credential_cooled_by_peer",
                    provider=cooldown.provider_key,
                    hint=cooldown.hint,
                    remaining_s=round((cooldown.until - now).total_seconds(), 1),
                    peer=cooldown.reported_by,
                )
