"""One tenure of a seat on this node: the steps by which it is established, and what they hand on to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from crewlet.base.errors import CrewletError
from crewlet.coordination import Lease
from crewlet.node.inbox_front import InboxFront
from crewlet.tools import SeatTools

__all__ = ["NoStep", "SeatStep", "SeatTenure"]

_log = structlog.get_logger(__name__)


class SeatStep(Protocol):
    """One step of establishing a seat, and its undoing."""

    @property
    def name(self) -> str:
        """What logs call it."""
        ...

    async def take(self, tenure: SeatTenure) -> None:
        """Do it. Raises ``CrewletError`` or ``OSError`` where the seat cannot be established."""
        ...

    async def give_back(self, tenure: SeatTenure) -> None:
        """Undo it; harmless where :meth:`take` got only half way, and when repeated. Raises what is not proven."""
        ...


class NoStep:
    """The place of a subsystem that this build does not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """What logs call it."""
        return self._name

    async def take(self, tenure: SeatTenure) -> None:
        """Nothing."""

    async def give_back(self, tenure: SeatTenure) -> None:
        """Nothing."""


class SeatTenure:
    """A seat from the first step of its establishment to the last of its release.

    ``tools``: the seat's surface, once its step is done. ``front``: what comes before the inbox. ``established`` is set
    when the seat admits turns, and when it no longer will: whoever waits for it is then told so by the admission.
    ``left_running``: what it worked on outlasted the wait of its release, and holds a delivery still.
    """

    def __init__(self, handle: str, lease: Lease) -> None:
        self.handle = handle
        self.lease = lease
        self.tools: SeatTools | None = None
        self.front = InboxFront()
        self.established = asyncio.Event()
        self.was_established = False
        self.left_running = False
        self.is_told = False
        self._begun: list[SeatStep] = []

    async def establish(self, steps: Sequence[SeatStep]) -> None:
        """Take the steps in their order; the one that fails counts as begun. Raises what a step raises."""
        for step in steps:
            self._begun.append(step)
            try:
                await step.take(self)
            except (CrewletError, OSError) as error:
                _log.warning("seat_step_failed", seat=self.handle, step=step.name, error=str(error))
                raise

    async def undo(self) -> None:
        """Undo what was begun, the last step first.

        A step that cannot be undone stops none before it: a child must not outlive its lease because something else
        does. It is tried again by the next call. Raises the first failure, once every step was tried.
        """
        failures: list[CrewletError | OSError] = []
        for step in [*reversed(self._begun)]:
            try:
                await step.give_back(self)
            except (CrewletError, OSError) as error:
                _log.warning("seat_step_not_undone", seat=self.handle, step=step.name, error=str(error))
                failures.append(error)
            else:
                self._begun.remove(step)
        if failures:
            raise failures[0]
