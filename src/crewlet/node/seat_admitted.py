"""The moments at which a seat starts admitting turns: once it is established, and at the first renew after an outage.

Whoever waits for a seat to be owned is told then, and need not wait for a heartbeat (S-038).
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["SeatAdmitted"]


class SeatAdmitted:
    """Tells everybody who asked to be told."""

    def __init__(self) -> None:
        self._calls: list[Callable[[str], None]] = []
        self._unproven: set[str] = set()

    def tell(self, call: Callable[[str], None]) -> Callable[[], None]:
        """Call ``call`` with a seat's handle each time that it begins to admit turns; returns what ends that."""
        self._calls.append(call)

        def end() -> None:
            if call in self._calls:
                self._calls.remove(call)

        return end

    def established(self, handle: str) -> None:
        """The seat is established."""
        self._unproven.discard(handle)
        self._admitted(handle)

    def unproven(self, handle: str) -> None:
        """A renew failed: the seat will admit nothing until one succeeds."""
        self._unproven.add(handle)

    def proven(self, handle: str) -> None:
        """A renew succeeded; told on where one had failed before."""
        if handle in self._unproven:
            self._unproven.discard(handle)
            self._admitted(handle)

    def gone(self, handle: str) -> None:
        """The seat is no longer held here."""
        self._unproven.discard(handle)

    def _admitted(self, handle: str) -> None:
        for call in [*self._calls]:
            call(handle)
