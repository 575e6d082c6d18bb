"""The company coming and going, and seats moving between nodes."""

from __future__ import annotations

from typing import ClassVar

from crewlet.events.body import Body, register

__all__ = ["AgentSpawned", "AgentTerminated", "OrgStarted", "OrgStopped"]


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
