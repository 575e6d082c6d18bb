"""The event queue under a whole company's bad days, each drawn from one seed, with a checker for each promise."""

from crewlet.testing.simulation.company import Fault
from crewlet.testing.simulation.drawing import draw_plan
from crewlet.testing.simulation.plan import Plan
from crewlet.testing.simulation.run import NO_FAULT, Run, run_plan, shrunk, simulate, told

__all__ = ["NO_FAULT", "Fault", "Plan", "Run", "draw_plan", "run_plan", "shrunk", "simulate", "told"]
