"""The turn engine: from a trigger, through phases and rounds, to an outcome. Knows nothing of leases and queues."""

from crewlet.turns.config import DelegationConfig, TurnConfig
from crewlet.turns.engine import TurnEngine
from crewlet.turns.meter import BudgetExhausted, Meter, NoMeter, RefusedWindow, Spent
from crewlet.turns.notes import Keep, NoteBox
from crewlet.turns.setup import CompanyBrief, SeatBrief, ToolSurface, TurnSetup, WorkerBrief

__all__ = [
    "BudgetExhausted",
    "CompanyBrief",
    "DelegationConfig",
    "Keep",
    "Meter",
    "NoMeter",
    "NoteBox",
    "RefusedWindow",
    "SeatBrief",
    "Spent",
    "ToolSurface",
    "TurnConfig",
    "TurnEngine",
    "TurnSetup",
    "WorkerBrief",
]
