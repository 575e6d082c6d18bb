"""How long the turn of a scheduled task may take: past that, it is ended between two rounds. Pure."""

from __future__ import annotations

from typing import Final

from crewlet.base.errors import CrewletError
from crewlet.events.types import TaskAssigned
from crewlet.inbox import Trigger

__all__ = ["SCHEDULED_TIMEOUT", "TimeSpent", "time_limit_of"]

SCHEDULED_TIMEOUT: Final = "scheduled_timeout"
"""The guard's kind."""


class TimeSpent(CrewletError):
    """A scheduled task has had the time that it may take."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the task may take {limit_s:g} s, and has had them")


def time_limit_of(trigger: Trigger) -> float | None:
    """How many seconds the trigger's task may take; ``None`` where it says none, and for all other work."""
    task = trigger.lead.data
    return float(task.timeout_seconds) if isinstance(task, TaskAssigned) and task.timeout_seconds > 0 else None
