"""A fleet's bad hours in virtual time, from one seed: hosts over one store, and rules for who may act when."""

from crewlet.testing.fleet_simulation.faults import FLEET_FAULTS, NO_FAULT, FleetFault
from crewlet.testing.fleet_simulation.plan import FULL, QUARTER, FleetPlan
from crewlet.testing.fleet_simulation.rules import RULES, Finding, Rule
from crewlet.testing.fleet_simulation.run import FleetRun, simulate_fleet
from crewlet.testing.fleet_simulation.world import FleetWorld

__all__ = [
    "FLEET_FAULTS",
    "FULL",
    "NO_FAULT",
    "QUARTER",
    "RULES",
    "Finding",
    "FleetFault",
    "FleetPlan",
    "FleetRun",
    "FleetWorld",
    "Rule",
    "simulate_fleet",
]
