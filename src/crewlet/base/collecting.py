"""How often the interpreter looks for dead cycles while a node runs."""

from __future__ import annotations

import gc

from crewlet.base import limits

__all__ = ["collect_seldom"]


def collect_seldom() -> None:
    """Call once a node stands: what is here now stays to the end, and what comes after is looked through seldom.

    A full collection that walked what a node stands on would stop the loop for 0.1 s; a turn makes thousands of
    objects that are gone without a collection.
    """
    gc.freeze()
    gc.set_threshold(limits.YOUNG_OBJECTS_MAX, *gc.get_threshold()[1:])
