"""Text from the outside made fit for a model, a log and an event: no control characters, no secrets, never cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from crewlet.base import limits

__all__ = ["REDACTED", "Cleaner", "clipped"]

REDACTED: Final = "[redacted]"

_TERMINAL_SEQUENCE: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


class Cleaner:
    """Strips control characters (newline and tab stay) and replaces the secrets it was given.

    A secret is found as it is and as JSON writes it, for structured content escapes the newlines of a private key.
    Values of fewer than ``SECRET_REDACT_MIN_CHARS`` characters are no secrets: replacing each "1" would ruin all texts.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        telling = {secret for secret in secrets if len(secret) >= limits.SECRET_REDACT_MIN_CHARS}
        forms = telling | {json.dumps(secret)[1:-1] for secret in telling}
        forms |= {json.dumps(secret, ensure_ascii=False)[1:-1] for secret in telling}
        # The longest first: a secret may be the beginning of another, whose rest would stay behind.
        longest_first = sorted(forms, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        """``text``, clean."""
        text = _redact(self._secrets, text)
        text = _CONTROL.sub("", _TERMINAL_SEQUENCE.sub("", text))
        text = _HALF_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", text)
        # Once more: what was stripped may have stood in the middle of a secret.
        return _redact(self._secrets, text)


def clipped(text: str, max_bytes: int) -> str:
    """As much of ``text`` as fits into ``max_bytes`` of UTF-8, whole characters only."""
    data = text.encode(errors="replace")
    return text if len(data) <= max_bytes else data[:max_bytes].decode(errors="ignore")


def _redact(secrets: re.Pattern[str] | None, text: str) -> str:
    return text if secrets is None else secrets.sub(REDACTED, text)
