"""Everything that is measured, in the order in which it is measured."""

from __future__ import annotations

from typing import Final

from benchmarks import (
    budget_charges,
    cold_starts,
    graceful_stops,
    held_seats,
    kill_takeovers,
    lease_tenures,
    member_takeovers,
    memory,
    queue_batches,
    queue_hand_overs,
    queue_mailboxes,
    queue_publishing,
    queue_singles,
    queue_times,
    record_reads,
    start_times,
    turn_cost,
    turn_rate,
)
from benchmarks.figures import Measurement

__all__ = ["MACHINE", "MEASUREMENTS"]

MEASUREMENTS: Final[tuple[Measurement, ...]] = (
    *start_times.MEASUREMENTS,
    *queue_times.MEASUREMENTS,
    *queue_publishing.MEASUREMENTS,
    *queue_batches.MEASUREMENTS,
    *queue_singles.MEASUREMENTS,
    *queue_hand_overs.MEASUREMENTS,
    *queue_mailboxes.MEASUREMENTS,
    *record_reads.MEASUREMENTS,
    *budget_charges.MEASUREMENTS,
    *lease_tenures.MEASUREMENTS,
    *held_seats.MEASUREMENTS,
    *kill_takeovers.MEASUREMENTS,
    *member_takeovers.MEASUREMENTS,
    *graceful_stops.MEASUREMENTS,
    *cold_starts.MEASUREMENTS,
    *turn_cost.MEASUREMENTS,
    *turn_rate.MEASUREMENTS,
    *memory.MEASUREMENTS,
)
MACHINE: Final = ("machine_cores", "machine_load_before", "machine_load_after")
"""What else a result says: on a machine that is busy with something else every time is too long."""
