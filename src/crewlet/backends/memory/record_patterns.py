"""Which keys a twin's listing or watch is about: asked of every key at every write, so nothing is split twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crewlet import topics

__all__ = ["covering"]

_EVERYTHING_BELOW = ".>"


def covering(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether any of ``patterns`` covers a key."""
    if any("*" in pattern or not pattern.endswith(_EVERYTHING_BELOW) for pattern in patterns):
        return lambda key: any(topics.matches(pattern, key) for pattern in patterns)
    prefixes = tuple(pattern[:-1] for pattern in patterns)
    # A key ends in no dot, so what goes on behind one has a token there.
    return lambda key: key.startswith(prefixes)
