"""The company coming, going and changing, seats moving between nodes, and seats that a person paused."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from crewlet.events.body import Body, register

__all__ = [
    "AgentSpawned",
    "AgentTerminated",
    "ConfigRevisionActivated",
    "ConfigRevisionApplied",
    "OrgStarted",
    "OrgStopped",
    "SeatPaused",
    "SeatResumed",
]


@register
class OrgStarted(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A node serves the company from now on."""

    event_type: ClassVar[str] = "org_started"
    company: str
    seats: int = 0

    def summary(self) -> str:
        """Which company started."""
        return f"{self.company} started with {self.seats} agent seats"


@register
class OrgStopped(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A node stops serving the company."""

    event_type: ClassVar[str] = "org_stopped"
    company: str

    def summary(self) -> str:
        """Which company stopped."""
        return f"{self.company} stopped"


@register
class ConfigRevisionActivated(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody put another document in force, for every node that runs the company; ``epoch`` is its number."""

    event_type: ClassVar[str] = "config_revision_activated"
    company: str
    revision_id: str
    epoch: int
    activated_by: str

    def summary(self) -> str:
        """Who put which document in force."""
        return f"{self.activated_by} put revision {self.revision_id} of {self.company} in force as number {self.epoch}"

    def actor(self) -> str:
        """Who put it in force."""
        return self.activated_by


@register
class ConfigRevisionApplied(Body, frozen=True, kw_only=True, omit_defaults=True):
    """The node that says so runs another document from now on. ``trouble``: what has yet to come after it, and why."""

    event_type: ClassVar[str] = "config_revision_applied"
    company: str
    revision_id: str
    epoch: int
    trouble: str = ""

    def summary(self) -> str:
        """Which document runs here."""
        trouble = f", with trouble: {self.trouble}" if self.trouble else ""
        return f"revision {self.revision_id} of {self.company}, number {self.epoch}, runs here now{trouble}"


@register
class AgentSpawned(Body, frozen=True, kw_only=True, omit_defaults=True):
    """This node acquired a seat and runs its agent; live only, since placement moves seats."""

    event_type: ClassVar[str] = "agent_spawned"
    agent_handle: str
    agent_id: str = ""
    role: str = ""
    epoch: int = 0

    def summary(self) -> str:
        """Which seat is attended."""
        return f"{self.agent_handle} is attended"

    def actor(self) -> str:
        """The seat's role."""
        return self.role


@register
class AgentTerminated(Body, frozen=True, kw_only=True, omit_defaults=True):
    """This node gave a seat up; live only."""

    event_type: ClassVar[str] = "agent_terminated"
    agent_handle: str
    agent_id: str = ""
    role: str = ""
    reason: str = ""

    def summary(self) -> str:
        """Which seat is no longer attended, and why."""
        return f"{self.agent_handle} is no longer attended here: {self.reason}"

    def actor(self) -> str:
        """The seat's role."""
        return self.role


@register
class SeatPaused(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A person paused a seat, or made a pause that stood stop the running turn too; one for each change."""

    event_type: ClassVar[str] = "seat_paused"
    agent_handle: str
    paused_by: str
    paused_at: datetime
    paused_by_seat: str = ""
    reason: str = ""
    stop_running: bool = False

    def summary(self) -> str:
        """Who paused which seat, and why."""
        why = f": {self.reason}" if self.reason else ""
        stopped = " and stopped its turn" if self.stop_running else ""
        return f"{self.paused_by} paused {self.agent_handle}{stopped}{why}"

    def actor(self) -> str:
        """Who paused it."""
        return self.paused_by


@register
class SeatResumed(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A pause was lifted; names the pause that this ended. ``resumed_by`` is empty where the seat left the company."""

    event_type: ClassVar[str] = "seat_resumed"
    agent_handle: str
    paused_by: str
    paused_at: datetime
    resumed_by: str = ""
    resumed_by_seat: str = ""

    def summary(self) -> str:
        """Who resumed which seat."""
        return f"{self.resumed_by or 'a change of the company'} resumed {self.agent_handle}"

    def actor(self) -> str:
        """Who resumed it."""
        return self.resumed_by
