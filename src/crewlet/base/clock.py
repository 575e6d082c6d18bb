"""Wall time and elapsed time, injected: nothing outside ``base`` reads a clock of its own."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """What time it is, and how much has passed."""

    def now(self) -> datetime:
        """The wall time, in UTC."""
        ...

    def elapsed_s(self) -> float:
        """Seconds on a clock that never goes back and keeps counting while the machine sleeps."""
        ...


class SystemClock:
    """The machine's clocks. ``elapsed_s`` counts sleep (``CLOCK_BOOTTIME``), where the machine has such a clock."""

    def now(self) -> datetime:
        """The wall time, in UTC."""
        return datetime.now(UTC)

    def elapsed_s(self) -> float:
        """Seconds since boot, sleep included: a laptop lid must not buy a stale lease its seat back."""
        boottime = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boottime is None else time.clock_gettime(boottime)
