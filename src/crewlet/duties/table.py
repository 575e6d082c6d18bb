"""How often each duty is done, and for how long a claim on it lasts: sized from its own work, in one table (S0, S1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crewlet.base import limits

__all__ = [
    "DUTY_TIMES",
    "EMBEDDINGS",
    "INTEGRATION_RECONCILE",
    "LEARNING",
    "MAINTENANCE",
    "OBJECT_COLLECTOR",
    "RETENTION",
    "SANDBOX_WAITER",
    "SCHEDULER",
    "DutyTimes",
]

_MINUTE_S: Final = 60.0
_HOUR_S: Final = 60 * _MINUTE_S


@dataclass(frozen=True, slots=True)
class DutyTimes:
    """``ttl_s``: how long a dead holder keeps the duty from its peers, and the most that one tick's work may take."""

    name: str
    every_s: float
    ttl_s: float

    @property
    def resource(self) -> str:
        """The lease that the duty is claimed under."""
        return f"worker:{self.name}"


SANDBOX_WAITER: Final = DutyTimes("sandbox-waiter", every_s=15.0, ttl_s=_MINUTE_S)
SCHEDULER: Final = DutyTimes("scheduler", every_s=10.0, ttl_s=30.0)
LEARNING: Final = DutyTimes("learning", every_s=_HOUR_S, ttl_s=limits.MAX_DUTY_TTL_S)
INTEGRATION_RECONCILE: Final = DutyTimes("integration-reconcile", every_s=15.0, ttl_s=4.5 * _MINUTE_S)
MAINTENANCE: Final = DutyTimes("maintenance", every_s=limits.MAINTENANCE_EVERY_S, ttl_s=45 * _MINUTE_S)
RETENTION: Final = DutyTimes("retention", every_s=15 * _MINUTE_S, ttl_s=45 * _MINUTE_S)
EMBEDDINGS: Final = DutyTimes("embeddings", every_s=_MINUTE_S, ttl_s=10 * _MINUTE_S)
OBJECT_COLLECTOR: Final = DutyTimes("object-collector", every_s=_HOUR_S, ttl_s=limits.MAX_DUTY_TTL_S)

DUTY_TIMES: Final = (
    SANDBOX_WAITER,
    SCHEDULER,
    LEARNING,
    INTEGRATION_RECONCILE,
    MAINTENANCE,
    RETENTION,
    EMBEDDINGS,
    OBJECT_COLLECTOR,
)
