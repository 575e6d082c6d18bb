"""Each value that the store holds is decoded once for all nodes: a hundred of them would decode it a hundred times.

A value is bytes and what it decodes to is frozen, so that no node sees anything but what it would have decoded.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache

from crewlet.coordination import lease_record
from crewlet.coordination.records import epochs

__all__ = ["decoded_once"]

_VALUES_MAX = 65_536
_PLACES = ((lease_record, "decode_record"), (epochs, "decode_record"), (epochs, "_hint"))


@contextmanager
def decoded_once() -> Generator[None]:
    """While this lasts, nodes share what they decode of leases and epochs."""
    before = [vars(module)[name] for module, name in _PLACES]
    for (module, name), decode in zip(_PLACES, before, strict=True):
        setattr(module, name, lru_cache(maxsize=_VALUES_MAX)(decode))
    try:
        yield
    finally:
        for (module, name), decode in zip(_PLACES, before, strict=True):
            setattr(module, name, decode)
