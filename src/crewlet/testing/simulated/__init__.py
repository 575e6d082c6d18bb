"""What the simulations of a fleet and of its turns share: processes, findings, planted faults, logs that are heard."""

from crewlet.testing.simulated.findings import Finding, Findings
from crewlet.testing.simulated.hearing import heard_by
from crewlet.testing.simulated.planting import Replacement, planted
from crewlet.testing.simulated.process import SimulatedProcess, current_process, in_processes

__all__ = [
    "Finding",
    "Findings",
    "Replacement",
    "SimulatedProcess",
    "current_process",
    "heard_by",
    "in_processes",
    "planted",
]
