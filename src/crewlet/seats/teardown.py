"""The undoing of one seat: tried until it is proven, and alarming while it is not (S1)."""

from __future__ import annotations

import asyncio

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError
from crewlet.base.tasks import Tasks
from crewlet.seats.hooks import ReleaseMode, SeatHooks

__all__ = ["Teardown"]

_log = structlog.get_logger(__name__)


class Teardown:
    """A seat whose teardown failed is *unproven* until a further try succeeds."""

    def __init__(self, handle: str, hooks: SeatHooks, clock: Clock, tasks: Tasks) -> None:
        self._handle = handle
        self._hooks = hooks
        self._clock = clock
        self._tasks = tasks
        self._patient: asyncio.Task[bool] | None = None
        self._unproven_since_s: float | None = None
        self._retries = 0

    @property
    def unproven(self) -> bool:
        """Whether it failed and was not made good since."""
        return self._unproven_since_s is not None

    @property
    def unproven_for_s(self) -> float:
        """For how long it has failed."""
        return 0.0 if self._unproven_since_s is None else self._clock.elapsed_s() - self._unproven_since_s

    async def run(self, mode: ReleaseMode) -> bool:
        """The first try; whether it is proven. One that is voluntary becomes fenced where it is hurried."""
        proven = await self._patiently() if mode is ReleaseMode.VOLUNTARY else None
        if proven is None:
            proven = await self._is_proven(ReleaseMode.FENCED, first=True)
        if proven:
            return True
        self._unproven_since_s, self._retries = self._clock.elapsed_s(), 0
        return False

    def hurry(self) -> None:
        """Wait no longer for what runs: the lease is gone, or must be taken for gone."""
        if self._patient is not None:
            self._patient.cancel()

    async def retry(self) -> bool:
        """A further try; whether it is proven now. Each twentieth that fails is an alarm (S-046)."""
        self._retries += 1
        if await self._is_proven(ReleaseMode.FENCED, first=False):
            self._unproven_since_s = None
            _log.info("seat_release_recovered", seat=self._handle, attempts=self._retries)
            return True
        if self._retries % limits.UNDEAD_ALARM_EVERY == 0:
            for_s = round(self.unproven_for_s, 1)
            _log.error("seat_still_unproven", seat=self._handle, attempts=self._retries, for_s=for_s)
        return False

    async def _patiently(self) -> bool | None:
        """Let go once what runs has ended; ``None`` where that was cut short."""
        patient = self._patient = self._tasks.start(
            f"let go {self._handle}", self._is_proven(ReleaseMode.VOLUNTARY, first=True)
        )
        try:
            await asyncio.wait((patient,))
        finally:
            patient.cancel()
            self._patient = None
        return None if patient.cancelled() else patient.result()

    async def _is_proven(self, mode: ReleaseMode, *, first: bool) -> bool:
        try:
            await self._hooks.on_release(self._handle, mode)
        except (CrewletError, OSError) as error:
            if first:
                _log.error("seat_release_unproven", seat=self._handle, error=str(error))
            return False
        except Exception:  # noqa: BLE001 - supervisor: what is not proven is kept and tried again, whatever it failed with
            _log.exception("seat_release_broke", seat=self._handle)
            return False
        return True
