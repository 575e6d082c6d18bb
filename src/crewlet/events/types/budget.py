"""What a node says of the token counters as they stand."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import msgspec

from crewlet.events.body import Body, register

__all__ = ["BudgetMeter", "BudgetMeters"]


class BudgetMeter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One capped window: ``scope`` is ``org`` or ``agent:{id}``, ``state`` is ``ok``, ``near`` or ``refusing``."""

    scope: str
    period: str
    label: str
    used: int
    max: int
    state: str
    resets_at: datetime
    refused_at: datetime | None = None
    agent_handle: str = ""


@register
class BudgetMeters(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Live only: every capped window, as this node read the counters; ``left_out`` says how many did not fit."""

    event_type: ClassVar[str] = "budget_meters"
    meters: tuple[BudgetMeter, ...] = ()
    left_out: int = 0

    def summary(self) -> str:
        """How many windows have a ceiling, and how many of them refuse."""
        refusing = sum(meter.state == "refusing" for meter in self.meters)
        return f"{len(self.meters)} token windows with a ceiling, {refusing} of them without room"
