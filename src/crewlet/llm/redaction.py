"""Keeps keys out of what is said about a failed call: vendors like to quote the key that they refuse."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crewlet.base import limits

__all__ = ["redacted"]

_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|gsk|xai)[-_][\w*\-.]{6,}")
_SECRET_MIN_CHARS = 4


def redacted(text: str, secrets: Iterable[str]) -> str:
    """``text`` on one line and not too long, without these secrets and without anything shaped like a vendor's key."""
    for secret in secrets:
        if len(secret) >= _SECRET_MIN_CHARS:
            text = text.replace(secret, "[key]")
    text = " ".join(_KEY_SHAPED.sub("[key]", text).split())
    if len(text) > limits.LLM_ERROR_TEXT_MAX_CHARS:
        return text[: limits.LLM_ERROR_TEXT_MAX_CHARS - 1] + "…"
    return text
