"""The test kit that ships with Crewlet: a loop whose time jumps, seeded ids, and a bounded wait for real-time tests."""

from crewlet.testing.ids import SeededIds
from crewlet.testing.virtual_time import (
    VirtualClock,
    VirtualDeadlock,
    VirtualTimeExceeded,
    VirtualTimeLoop,
    run_virtual,
)
from crewlet.testing.waiting import wait_until

__all__ = [
    "SeededIds",
    "VirtualClock",
    "VirtualDeadlock",
    "VirtualTimeExceeded",
    "VirtualTimeLoop",
    "run_virtual",
    "wait_until",
]
