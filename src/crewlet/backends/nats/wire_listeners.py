"""Who wants to hear of one kind of thing that happens to a connection."""

from __future__ import annotations

from collections.abc import Callable

import structlog

__all__ = ["WireListeners"]

_log = structlog.get_logger(__name__)


class WireListeners:
    """Calls that are made, in order, each time."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []

    def add(self, call: Callable[[], None]) -> Callable[[], None]:
        """Make this call too from now on; returns what removes it."""
        self._calls.append(call)

        def remove() -> None:
            if call in self._calls:
                self._calls.remove(call)

        return remove

    def tell(self) -> None:
        """It has happened."""
        for call in [*self._calls]:
            try:
                call()
            except Exception:  # noqa: BLE001 - one listener must not keep the others, or the next dial, from happening
                _log.exception("wire_listener_failed")
