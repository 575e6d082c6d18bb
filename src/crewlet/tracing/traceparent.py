"""The W3C ``traceparent`` header: where a request from outside stands in somebody else's trace (E-180)."""

from __future__ import annotations

import re
from typing import Final

from crewlet.base.trace import Trace

__all__ = ["parse_traceparent"]

_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_FIRST_VERSION: Final = "00"
_NO_VERSION: Final = "ff"


def parse_traceparent(header: str) -> Trace | None:
    """The span that the header names, or ``None`` where it is missing or malformed: it is then as if not sent.

    A later version may say more behind what this one knows. The sampling flag is not looked at: our events carry
    their trace whether anybody samples or not.
    """
    found = _FORM.fullmatch(header.strip(" \t"))
    if found is None:
        return None
    version, trace_id, span_id, more = found.groups()
    if version == _NO_VERSION or (version == _FIRST_VERSION and more) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Trace(trace_id, span_id)
