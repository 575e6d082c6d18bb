"""Turning names from outside into parts of a record's key, and the patterns that listings take."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from crewlet.base import limits

__all__ = ["checked_key", "checked_pattern", "key_token"]

_TOKEN: Final = r"[-/_=A-Za-z0-9]+"  # noqa: S105 - a token of a key
_KEY: Final = re.compile(rf"{_TOKEN}(\.{_TOKEN})*")
_PATTERN: Final = re.compile(rf"{_TOKEN}(\.({_TOKEN}|\*))*(\.>)?")
_PLAIN: Final = re.compile(r"[-_A-Za-z0-9]{1,80}")
_DIGEST_DIGITS: Final = 40


def checked_key(key: str) -> str:
    """``key`` if both backends can store it: dotted tokens of letters, digits and ``-/_=``. Raises ``ValueError``.

    One that is longer than ``limits.RECORD_KEY_MAX_CHARS`` is none: from a line of its protocol that is too long the
    broker hangs up on everything that goes over the link.
    """
    _check_length(key)
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} cannot be the key of a record")
    return key


def checked_pattern(pattern: str) -> str:
    """``pattern`` if it names one class of keys: its first token spelled out, then tokens, ``*``, a last ``>``.

    Raises ``ValueError``: what names no class would answer with nothing, as an empty class does (C-058).
    """
    _check_length(pattern)
    if not _PATTERN.fullmatch(pattern):
        raise ValueError(f"{pattern!r} cannot be listed: a pattern begins with the class of its keys, as in 'seat.>'")
    return pattern


def _check_length(key: str) -> None:
    if len(key) > limits.RECORD_KEY_MAX_CHARS:
        raise ValueError(f"{key[:40]}…: a key of {len(key)} characters, above {limits.RECORD_KEY_MAX_CHARS}")


def key_token(name: str) -> str:
    """One token that stands for ``name`` alone: the name itself where it is plain, else a digest of it.

    A digest starts with ``=``, which a plain name cannot hold, so the two never meet.
    """
    if _PLAIN.fullmatch(name):
        return name
    return "=" + hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_DIGITS]
