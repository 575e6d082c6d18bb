"""When the next placement pass is due: at a fixed interval, and early where something changed (S-025 to S-027)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from crewlet.base.clock import Clock

__all__ = ["PassRhythm"]


class PassRhythm:
    """One pass in an interval, and at most one early one."""

    def __init__(self, clock: Clock, every_s: float) -> None:
        self._clock = clock
        self._every_s = every_s
        self._asked = asyncio.Event()
        self._early_at_s: float | None = None
        self._began_s = 0.0

    def begin(self) -> None:
        """The first interval begins now."""
        self._began_s = self._clock.elapsed_s()

    def ask(self) -> None:
        """Something changed: a pass should come early."""
        self._asked.set()

    async def due(self) -> None:
        """Return when the next pass is to begin."""
        with suppress(TimeoutError):
            # From start to start: a pass that claims much must not make the next one late.
            async with asyncio.timeout(self._left_s(self._began_s)):
                await self._asked.wait()
                if self._early_at_s is not None:
                    # At most one early pass in an interval (S-027).
                    await asyncio.sleep(self._left_s(self._early_at_s))
                self._early_at_s = self._clock.elapsed_s()
        self._asked.clear()
        if self._early_at_s is not None and self._left_s(self._early_at_s) <= 0:
            self._early_at_s = None
        self._began_s = self._clock.elapsed_s()

    def _left_s(self, since_s: float) -> float:
        return self._every_s - (self._clock.elapsed_s() - since_s)
