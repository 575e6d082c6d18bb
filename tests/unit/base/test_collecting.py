"""What a node stands on is walked by no collection, and young objects seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from crewlet.base import limits
from crewlet.base.collecting import collect_seldom


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    usual = gc.get_threshold()
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()


def test_what_is_here_when_a_node_stands_is_walked_no_more() -> None:
    standing: list[list[object]] = [[]]

    collect_seldom()

    assert all(each is not standing for each in gc.get_objects())
    assert gc.get_freeze_count() > 0


def test_young_objects_are_looked_through_at_a_bound_with_a_name() -> None:
    old, older = gc.get_threshold()[1:]

    collect_seldom()

    assert gc.get_threshold() == (limits.YOUNG_OBJECTS_MAX, old, older)
