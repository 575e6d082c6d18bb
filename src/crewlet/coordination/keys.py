"""Turning names from outside into parts of a record's key."""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["checked_key", "key_token"]

_KEY: Final = re.compile(r"[-/_=A-Za-z0-9]+(\.[-/_=A-Za-z0-9]+)*")
_PLAIN: Final = re.compile(r"[-_A-Za-z0-9]{1,80}")
_DIGEST_DIGITS: Final = 40


def checked_key(key: str) -> str:
    """``key`` if both backends can store it: dotted tokens of letters, digits and ``-/_=``. Raises ``ValueError``."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} cannot be the key of a record")
    return key


def key_token(name: str) -> str:
    """One token that stands for ``name`` alone: the name itself where it is plain, else a digest of it.

    A digest starts with ``=``, which a plain name cannot hold, so the two never meet.
    """
    if _PLAIN.fullmatch(name):
        return name
    return "=" + hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_DIGITS]
