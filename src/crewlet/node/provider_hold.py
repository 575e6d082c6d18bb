"""While every key of a seat's models rests, its mail waits at the broker: each try would only spend a delivery.

A key rests for an hour where its vendor says nothing, and a message has used up its deliveries within ten minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.node.seat_holds import SeatHolds
from crewlet.node.turn_runner import CompanyEpoch
from crewlet.org import Phase
from crewlet.queue import Defer

__all__ = ["KEYS_REST", "ProviderHold", "rests_until"]

_log = structlog.get_logger(__name__)

KEYS_REST: Final = "keys_rest"
"""The hold of a seat none of whose models has a key that may be used."""


def rests_until(epoch: CompanyEpoch, handle: str, now: datetime) -> datetime | None:
    """When the seat can finish a turn again, where one of its chains has no key to use; ``None`` where all have one.

    A turn needs a model to work and one to review: one that began and cannot be reviewed would have spent its tokens,
    and reached outside, for nothing.
    """
    company = epoch.organization
    seat = company.agent_seat_by_handle(handle)
    if seat is None:
        return None
    chains = {company.model_chain(seat, phase, skipped=epoch.skipped) for phase in (Phase.EXECUTE, Phase.REVIEW)}
    ends = [epoch.models.rests_until(chain, now) for chain in chains]
    return max((end for end in ends if end is not None), default=None)


class ProviderHold:
    """Asks the company in force each time."""

    def __init__(
        self,
        epoch: Callable[[], CompanyEpoch],
        holds: SeatHolds,
        clock: Clock,
    ) -> None:
        self._epoch = epoch
        self._holds = holds
        self._clock = clock
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._tasks = Tasks("provider_hold")

    async def refuses(self, handle: str) -> Defer | None:
        """Why no turn of the seat can run, its inbox held by then; ``None`` where its models have keys to use."""
        while (until := self._rests_until(handle)) is not None:
            try:
                await self._hold(handle, until)
                if self._rests_until(handle) is None:
                    # A key serves again, or another document is in force, and what was lifted was not there yet.
                    await self._holds.lift(handle, KEYS_REST)
                    continue
            except Unavailable as error:
                # The delivery is handed back all the same; the next one tries the hold again.
                _log.warning("seat_not_held_while_keys_rest", seat=handle, error=str(error))
            self._release_in_time(handle)
            return Defer(f"every key of its models rests, the first until {until:%Y-%m-%d %H:%M:%S} UTC")
        return None

    async def company_changed(self) -> None:
        """Another document is in force: whoever waited for a key, and has one now, works."""
        for handle in self._holds.seats():
            if KEYS_REST in self._holds.of(handle) and self._rests_until(handle) is None:
                await self._release(handle)

    async def close(self) -> None:
        """Release nothing any more."""
        await self._tasks.close()

    def _rests_until(self, handle: str) -> datetime | None:
        return rests_until(self._epoch(), handle, self._clock.now())

    async def _hold(self, handle: str, until: datetime) -> None:
        if KEYS_REST not in self._holds.of(handle):
            _log.warning("seat_held_while_keys_rest", seat=handle, until=until)
        await self._holds.hold(handle, KEYS_REST)

    def _release_in_time(self, handle: str) -> None:
        waiting = self._waiting.get(handle)
        if waiting is None or waiting.done():
            self._waiting[handle] = self._tasks.start("wait", self._wait(handle))

    async def _wait(self, handle: str) -> None:
        """Until a key serves again, and the seat is released or gone; a wait is never long: a machine may sleep."""
        while True:
            until = self._rests_until(handle)
            if until is None and await self._release(handle):
                return
            left_s = limits.KEYS_LOOKED_AT_EVERY_S if until is None else (until - self._clock.now()).total_seconds()
            await asyncio.sleep(min(max(left_s, 0.0), limits.KEYS_LOOKED_AT_EVERY_S))

    async def _release(self, handle: str) -> bool:
        """The seat fetches again, where it was held and is still here; false where the queue could not be told."""
        if KEYS_REST not in self._holds.of(handle):
            return True
        try:
            await self._holds.release(handle, KEYS_REST)
        except Unavailable as error:
            _log.warning("seat_not_released_to_its_keys", seat=handle, error=str(error))
            return False
        _log.info("seat_has_a_key_again", seat=handle)
        return True
