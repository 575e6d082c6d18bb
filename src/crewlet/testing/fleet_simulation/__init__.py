"""A fleet's bad hours in virtual time, from one seed: hosts over one store, and checkers for who may act when."""

from crewlet.testing.fleet_simulation.run import FleetRun, simulate_fleet
from crewlet.testing.fleet_simulation.world import FleetPlan, FleetWorld

__all__ = ["FleetPlan", "FleetRun", "FleetWorld", "simulate_fleet"]
