"""What a turn is given besides its trigger: who it is, its company, its models and its tools. ``node`` fills it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crewlet.llm import Model
from crewlet.tools import ServerSummary, Tool, ToolRow
from crewlet.turns.meter import Meter, NoMeter
from crewlet.turns.notes import NoteBox
from crewlet.turns.onboarding_marks import NeverDue, OnboardingMarks

__all__ = ["CompanyBrief", "SeatBrief", "ToolSurface", "TurnSetup", "WorkerBrief"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyBrief:
    """What every prompt says of the company."""

    name: str
    mission: str = ""
    vision: str = ""
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatBrief:
    """What the prompt says of the seat. ``team`` and ``human_colleagues`` are finished lines, one a colleague."""

    handle: str
    name: str
    agent_id: str = ""
    goal: str = ""
    backstory: str = ""
    responsibilities: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()
    unit: str = ""
    manager: str = ""
    team: tuple[str, ...] = ()
    human_colleagues: tuple[str, ...] = ()


class ToolSurface(Protocol):
    """The tools of one seat, as the registry has them while the turn runs."""

    def builtins(self) -> Sequence[Tool]:
        """The tools that the engine itself serves; all are offered from the first round on."""
        ...

    def servers(self) -> Sequence[ServerSummary]:
        """Each tool server, and why it does not serve where it does not."""
        ...

    def server_tools(self, server: str) -> Sequence[ToolRow]:
        """What a server offers; empty for one that is unknown or failed."""
        ...

    def find(self, name: str) -> Tool | None:
        """The tool of that name, built-in or served."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBrief:
    """A kind of worker that the seat may use. An empty ``model`` is the seat's own, an empty ``output`` the usual."""

    name: str
    description: str
    system_prompt: str
    tools: tuple[str, ...] = ()
    model: str = ""
    max_turns: int = 20
    output: Mapping[str, object] = field(default_factory=dict[str, object])


def _no_model(key: str) -> Model:
    raise KeyError(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSetup:
    """Everything that one turn works with; fixed when the turn begins. Without a judge no phase is granted rounds.

    Without a ``subagent`` nothing is delegated; ``model_named`` makes a model of one of ``model_keys``. ``onboarder``
    speaks in an onboarding, which is due as ``onboarding`` says; ``onboarding_tools`` is where tools join it that it
    has beside its own, such as the one that keeps what was found once agents have a memory. ``revision`` names the
    company's document.
    """

    seat: SeatBrief
    company: CompanyBrief
    executor: Model
    reviewer: Model
    judge: Model | None = None
    onboarder: Model | None = None
    onboarding: OnboardingMarks = field(default_factory=NeverDue)
    onboarding_tools: Sequence[Tool] = ()
    subagent: Model | None = None
    workers: Mapping[str, WorkerBrief] = field(default_factory=dict[str, WorkerBrief])
    model_keys: tuple[str, ...] = ()
    model_named: Callable[[str], Model] = field(default=_no_model)
    tools: ToolSurface
    meter: Meter = field(default_factory=NoMeter)
    notes: NoteBox = field(default_factory=NoteBox)
    revision: str = ""
