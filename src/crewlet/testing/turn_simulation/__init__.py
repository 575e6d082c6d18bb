"""A company's bad days in virtual time, from one seed: real turns over the twins, and rules for what becomes of it."""

from crewlet.testing.turn_simulation.faults import NO_FAULT, TURN_FAULTS, TurnFault
from crewlet.testing.turn_simulation.plan import TurnPlan
from crewlet.testing.turn_simulation.rules import RULES, Finding, Rule
from crewlet.testing.turn_simulation.run import TurnRun, simulate_turns

__all__ = [
    "NO_FAULT",
    "RULES",
    "TURN_FAULTS",
    "Finding",
    "Rule",
    "TurnFault",
    "TurnPlan",
    "TurnRun",
    "simulate_turns",
]
