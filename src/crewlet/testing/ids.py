"""Ids that are the same on every run with the same seed."""

from __future__ import annotations

import random

from crewlet.base.ids import RandomIds

__all__ = ["SeededIds"]


class SeededIds(RandomIds):
    """Ids drawn from a seeded generator: one seed, one sequence."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(random.Random(seed))
