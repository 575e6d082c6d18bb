"""A seat and a unit of the normalised organisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from crewlet.base.ids import AgentId, Handle
from crewlet.org.model_entries import ModelPick
from crewlet.org.names import UnitKey
from crewlet.org.token_budget import TokenBudget

__all__ = ["Seat", "SeatKind", "Unit"]

SeatKind = Literal["agent", "human"]


@dataclass(frozen=True, slots=True)
class SeatPlacement:
    """Which nodes may run a seat: that of this id, those that carry these labels; nothing said, any."""

    node: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One seat, an agent's or a human's, with what its unit hands down already merged in.

    ``manages`` is resolved: explicit entries expanded, then those that it manages as a lead. ``agent_id`` is ``None``
    for a human. ``contact`` holds only the identities given. ``workers`` are the templates that it may use. ``mcp_env``
    keeps its ``${VAR}`` references.
    """

    handle: Handle
    name: str
    kind: SeatKind
    unit: UnitKey | None
    agent_id: AgentId | None
    goal: str
    backstory: str
    responsibilities: tuple[str, ...]
    behavioral_guidelines: tuple[str, ...]
    email: str
    availability: str
    contact: Mapping[str, str]
    manages: tuple[Handle, ...]
    models: ModelPick
    placement: SeatPlacement
    token_budget: TokenBudget
    workers: tuple[str, ...]
    mcp_env: Mapping[str, Mapping[str, str]] = field(repr=False)

    @property
    def is_agent(self) -> bool:
        """Whether the engine runs this seat."""
        return self.kind == "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One unit. ``lead`` and ``channel`` are the effective ones, inherited where the unit names none itself."""

    key: UnitKey
    name: str
    type: str
    purpose: str
    goals: tuple[str, ...]
    parent: UnitKey | None
    lead: Handle | None
    channel: str
    seats: tuple[Handle, ...]
    children: tuple[UnitKey, ...]
