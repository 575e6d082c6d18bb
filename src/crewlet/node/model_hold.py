"""A company without any model keeps its seats' mail at the broker until it has one (E-091).

The hold is taken before the attach and before a delivery is handed back, so that what waits spends no deliveries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from crewlet.base.errors import Unavailable
from crewlet.node.seat_holds import SeatHolds
from crewlet.org import Organization
from crewlet.queue import Defer

__all__ = ["NO_MODEL", "ModelHold"]

_log = structlog.get_logger(__name__)

NO_MODEL: Final = "no_model"
"""The hold of a seat whose company configures no model."""


class ModelHold:
    """Asks the company in force each time."""

    def __init__(
        self,
        company: Callable[[], Organization],
        holds: SeatHolds,
    ) -> None:
        self._company = company
        self._holds = holds

    async def refuses(self, handle: str) -> Defer | None:
        """Why no turn of the seat can run, its inbox held by then; ``None`` where the company has a model."""
        while not self._company().models:
            try:
                await self._hold(handle)
                if self._company().models:
                    # Another document has come into force meanwhile, and lifted what was not there yet.
                    await self._holds.lift(handle, NO_MODEL)
                    continue
            except Unavailable as error:
                # The delivery is handed back all the same; the next one tries the hold again.
                _log.warning("seat_not_held_without_model", seat=handle, error=str(error))
            return Defer("the company configures no model (providers.llm)")
        return None

    async def company_changed(self) -> None:
        """Another document is in force: whoever waited for a model works, or nobody does any more."""
        for handle in self._holds.seats():
            try:
                await self._follow(handle)
            except Unavailable as error:
                _log.warning("seat_model_hold_not_changed", seat=handle, error=str(error))

    async def _follow(self, handle: str) -> None:
        if not self._company().models:
            await self._hold(handle)
        elif NO_MODEL in self._holds.of(handle):
            await self._holds.release(handle, NO_MODEL)
            _log.info("seat_has_a_model_again", seat=handle)

    async def _hold(self, handle: str) -> None:
        if NO_MODEL not in self._holds.of(handle):
            _log.info("seat_held_without_model", seat=handle)
        await self._holds.hold(handle, NO_MODEL)
