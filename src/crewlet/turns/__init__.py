"""The turn engine: from a trigger, through phases and rounds, to an outcome. Knows nothing of leases and queues."""

from crewlet.turns.config import DelegationConfig, TurnConfig
from crewlet.turns.engine import TurnEngine
from crewlet.turns.meter import BudgetExhausted, Meter, NoMeter, RefusedWindow, Spent
from crewlet.turns.notes import Keep, NoteBox
from crewlet.turns.onboarding_marks import NeverDue, OnboardingMarks
from crewlet.turns.setup import CompanyBrief, SeatBrief, ToolSurface, TurnSetup, WorkerBrief

__all__ = [
    "BudgetExhausted",
    "CompanyBrief",
    "DelegationConfig",
    "Keep",
    "Meter",
    "NeverDue",
    "NoMeter",
    "NoteBox",
    "OnboardingMarks",
    "RefusedWindow",
    "SeatBrief",
    "Spent",
    "ToolSurface",
    "TurnConfig",
    "TurnEngine",
    "TurnSetup",
    "WorkerBrief",
]
