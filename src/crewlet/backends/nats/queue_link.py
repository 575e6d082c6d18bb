"""Waiting for the link: what retries on the broker have in common."""

from __future__ import annotations

import asyncio
import contextlib

from crewlet.backends.nats.wire import Wire
from crewlet.base import limits

__all__ = ["LinkWatch"]


class LinkWatch:
    """Whether the link stands, to be awaited instead of polled."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._up = asyncio.Event()
        if wire.connected:
            self._up.set()
        self._unwatch = (wire.on_disconnected(self._up.clear), wire.on_reconnected(self._up.set))

    async def settled(self, attempt: int) -> None:
        """Return once a retry has a chance: after a pause that grows with ``attempt``, and a bounded wait for the link.

        Never says that the link stands; the retry itself will.
        """
        await asyncio.sleep(min(limits.PULL_BACKOFF_FIRST_S * 2.0**attempt, limits.PULL_BACKOFF_MAX_S))
        if not self._wire.connected:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.LINK_WAIT_S):
                    await self._up.wait()

    def close(self) -> None:
        """Listen to the link no longer."""
        for remove in self._unwatch:
            remove()
