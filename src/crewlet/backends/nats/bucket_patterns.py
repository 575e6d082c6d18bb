"""The filters of one pass: patterns checked, and none that another covers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from crewlet.coordination import checked_pattern

__all__ = ["checked_patterns"]


def checked_patterns(patterns: Sequence[str]) -> list[str]:
    """The patterns that are needed to cover what all of them cover.

    Raises ``ValueError`` where one cannot be listed, where there is none, and where two cover some keys in common and
    neither covers the other: no pass can show those keys once.
    """
    if not patterns:
        raise ValueError("a watch needs a pattern")
    distinct = [*dict.fromkeys(checked_pattern(pattern) for pattern in patterns)]
    needed = [each for each in distinct if not any(_covers(other, each) for other in distinct if other != each)]
    for one, other in combinations(needed, 2):
        if _overlap(one, other):
            raise ValueError(f"{one!r} and {other!r} cover keys in common")
    return needed


def _covers(wide: str, narrow: str) -> bool:
    wanted, given = wide.split("."), narrow.split(".")
    for index, part in enumerate(wanted):
        if part == ">":
            return len(given) > index
        if index >= len(given) or given[index] == ">" or part not in ("*", given[index]):
            return False
    return len(wanted) == len(given)


def _overlap(one: str, other: str) -> bool:
    for a, b in zip(one.split("."), other.split("."), strict=False):
        if ">" in (a, b):
            return True
        if "*" not in (a, b) and a != b:
            return False
    return one.count(".") == other.count(".")
