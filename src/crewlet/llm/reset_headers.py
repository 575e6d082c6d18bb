"""When a vendor says that a limit ends, in the many ways in which vendors say it. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["reset_after_s", "wait_s"]

_DURATION = re.compile(
    r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+(?:\.\d+)?)ms)?"
)
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_EPOCH_SECONDS_FROM = 1e9
_EPOCH_MILLISECONDS_FROM = 1e12

_LIMITED = ("requests", "tokens", "input-tokens", "output-tokens")


def reset_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the limit that refused a call ends, by its response's headers; ``None`` where they do not say.

    ``Retry-After`` is about this very call and comes first. Of several reset headers the latest counts, unless the
    headers beside them say which limit is used up. Header names are in lower case.
    """
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None and (after_ms := _number(milliseconds)) is not None:
        return after_ms / 1000
    for name in ("retry-after", "x-ratelimit-reset", "ratelimit-reset"):
        if name in headers and (after_s := wait_s(headers[name], now)) is not None:
            return after_s
    resets = [*_resets(headers, now, only_used_up=True)] or [*_resets(headers, now, only_used_up=False)]
    return max(resets, default=None)


def _resets(headers: Mapping[str, str], now: datetime, *, only_used_up: bool) -> list[float]:
    found: list[float] = []
    for what in _LIMITED:
        for reset, remaining in (
            (f"x-ratelimit-reset-{what}", f"x-ratelimit-remaining-{what}"),
            (f"anthropic-ratelimit-{what}-reset", f"anthropic-ratelimit-{what}-remaining"),
        ):
            after_s = wait_s(headers[reset], now) if reset in headers else None
            if after_s is not None and not (only_used_up and headers.get(remaining) != "0"):
                found.append(after_s)
    return found


def wait_s(text: str, now: datetime) -> float | None:
    """Seconds from ``now`` by one header value: seconds, ``6m0s`` or ``20ms``, a date, an instant of the epoch."""
    written = text.strip()
    number = _number(written)
    if number is not None:
        return _from_number(number, now)
    match = _DURATION.fullmatch(written)
    if written and match is not None:
        return sum(float(amount) * _SECONDS[unit] for unit, amount in match.groupdict().items() if amount is not None)
    moment = _moment(written)
    return None if moment is None else max((moment - now).total_seconds(), 0.0)


def _number(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _from_number(number: float, now: datetime) -> float:
    if number >= _EPOCH_MILLISECONDS_FROM:
        return max(number / 1000 - now.timestamp(), 0.0)
    if number >= _EPOCH_SECONDS_FROM:
        return max(number - now.timestamp(), 0.0)
    return number


def _moment(written: str) -> datetime | None:
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(written)
        except (ValueError, TypeError):
            continue
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return None
