"""Work given to a seat."""

from __future__ import annotations

from typing import ClassVar

from crewlet.events.body import Body, register

__all__ = ["TaskAssigned"]


@register
class TaskAssigned(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A task for a seat, put on its inbox by the scheduler."""

    event_type: ClassVar[str] = "task_assigned"
    agent_handle: str
    task: str
    agent_id: str = ""
    assigned_by: str = ""
    timeout_seconds: int = 0

    def summary(self) -> str:
        """Who got which task."""
        return f"{self.agent_handle} was given: {self.task[:120]}"

    def actor(self) -> str:
        """Who assigned it."""
        return self.assigned_by
