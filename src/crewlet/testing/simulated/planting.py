"""Plants a fault in the engine: something else stands where its own piece does, for a while."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager

__all__ = ["Replacement", "planted"]

Replacement = tuple[object, str, object]
"""Whose piece, by which name, and what stands in its place."""


@contextmanager
def planted(replaced: Iterable[Replacement]) -> Generator[None]:
    """While this lasts, the engine is wrong."""
    with ExitStack() as undone:
        for owner, name, value in replaced:
            undone.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, value)
        yield
