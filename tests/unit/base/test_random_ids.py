"""Ids from the operating system's randomness."""

from __future__ import annotations

from crewlet.base.ids import RandomIds


def test_ids_never_come_twice_within_or_across_two_sources() -> None:
    one, two = RandomIds(), RandomIds()

    made = [source.uuid() for _ in range(2000) for source in (one, two)]

    assert len(set(made)) == len(made)
    assert {each.version for each in made} == {4}


def test_hexadecimal_ids_have_the_length_that_was_asked_for_even_above_a_block() -> None:
    ids = RandomIds()

    assert [len(ids.hex(digits)) for digits in (1, 12, 10_000)] == [1, 12, 10_000]
    assert len({ids.hex(12) for _ in range(2000)}) == 2000
