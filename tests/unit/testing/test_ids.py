"""Seeded ids repeat."""

from __future__ import annotations

from crewlet.testing import SeededIds


def test_one_seed_gives_one_sequence() -> None:
    first, second = SeededIds(7), SeededIds(7)

    drawn = [(first.uuid(), first.hex(16)) for _ in range(5)]

    assert drawn == [(second.uuid(), second.hex(16)) for _ in range(5)]
    assert len(set(drawn)) == 5


def test_another_seed_gives_another_sequence() -> None:
    assert SeededIds(1).uuid() != SeededIds(2).uuid()
