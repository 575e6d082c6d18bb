"""One loop of ticks: when the next one is, what became of the last one, and how the loop ends (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError
from crewlet.duties.duty import DutyStatus
from crewlet.duties.ending import is_asked_to_end

__all__ = ["TickLoop"]

_log = structlog.get_logger(__name__)


class TickLoop:
    """Ticks at once and then every ``every_s`` from the start of one to the start of the next, until :meth:`stop`.

    ``tick`` answers whether it worked; ``after_failure`` is awaited where it raised. After a failure the next tick
    comes a little more than ``every_s`` later: each peer has had one by then, and a duty that this node cannot do is
    done by one that can.
    """

    def __init__(
        self,
        name: str,
        every_s: float,
        tick: Callable[[], Awaitable[bool]],
        clock: Clock,
        *,
        may_take_s: float,
        after_failure: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._every_s = every_s
        self._tick = tick
        self._clock = clock
        self._may_take_s = may_take_s
        self._after_failure = after_failure
        self._stopping = asyncio.Event()
        self._began_s: float | None = None
        self._worked_at: datetime | None = None
        self._failures = 0
        self._error = ""

    async def run(self) -> None:
        """Tick until stopped; the tick under way then is the last one."""
        while not self._stopping.is_set():
            self._began_s = began_s = self._clock.elapsed_s()
            try:
                await self._supervised()
            finally:
                self._began_s = None
            with suppress(TimeoutError):
                async with asyncio.timeout(self._until_next_s(began_s)):
                    await self._stopping.wait()

    def stop(self) -> None:
        """Begin no further tick."""
        self._stopping.set()

    def forgive(self) -> None:
        """What failed here is somebody else's to do now."""
        self._failures, self._error = 0, ""

    def status(self, *, held: bool) -> DutyStatus:
        """How it stands now."""
        running_for_s = None if self._began_s is None else self._clock.elapsed_s() - self._began_s
        return DutyStatus(
            name=self.name,
            held=held,
            worked_at=self._worked_at,
            running_for_s=running_for_s,
            overdue=running_for_s is not None and running_for_s > self._may_take_s,
            failures=self._failures,
            error=self._error,
        )

    def _until_next_s(self, began_s: float) -> float:
        if self._failures:
            return self._every_s * (1 + limits.DUTY_STEPS_BACK_FRACTION)
        return max(0.0, began_s + self._every_s - self._clock.elapsed_s())

    async def _supervised(self) -> None:
        try:
            if await self._tick():
                self.forgive()
                self._worked_at = self._clock.now()
        except asyncio.CancelledError:
            if is_asked_to_end():
                raise
            # Something that the work waited for was cancelled, not this loop, which must not die of it unheard.
            self._failed("what it waited for was cancelled")
            _log.warning("duty_failed", duty=self.name, failures=self._failures, error=self._error)
        except CrewletError as error:
            self._failed(str(error))
            _log.warning("duty_failed", duty=self.name, failures=self._failures, error=self._error)
        except Exception as error:  # noqa: BLE001 - supervisor: a dead loop would leave its duty undone
            self._failed(repr(error))
            _log.exception("duty_failed", duty=self.name, failures=self._failures)
        else:
            return
        if self._after_failure is not None:
            await self._after_failure()

    def _failed(self, error: str) -> None:
        self._failures += 1
        self._error = error[: limits.DUTY_ERROR_MAX_CHARS]
