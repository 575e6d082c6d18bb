"""Dead letters that no handler knows of, and who is told of them: giving up is never silent (S1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from crewlet.events import Event
from crewlet.queue.deliveries import Subscription

__all__ = ["UnheardLetter", "UnheardListener", "UnheardListeners"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnheardLetter:
    """A message whose last delivery no handler was given, or whose handler never said what came of it.

    ``holder_lost``: whoever was given the delivery ended with it; another may go on with the work by its record.
    """

    subscription: Subscription
    event: Event
    reason: str
    holder_lost: bool = False


UnheardListener = Callable[[UnheardLetter], Awaitable[None]]
"""Told of such a letter once it is kept, before the message is let go of: at least once, however often that fails."""


class UnheardListeners:
    """Those of one process."""

    def __init__(self) -> None:
        self._listeners: list[UnheardListener] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def add(self, listener: UnheardListener) -> Callable[[], None]:
        """Tell ``listener`` from now on; returns what removes it."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    async def tell(self, letter: UnheardLetter) -> None:
        """Tell each; what one fails with is logged, and costs neither the letter nor the next listener."""
        for listener in [*self._listeners]:
            try:
                await listener(letter)
            except Exception:  # noqa: BLE001 - supervisor: a listener's fault must not hold a buried message back
                _log.exception("unheard_listener_failed", topic=letter.subscription.topic, event_id=letter.event.id)
