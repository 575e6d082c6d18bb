"""The W3C header that says where a request from outside stands."""

from __future__ import annotations

import pytest

from crewlet.base.trace import Trace
from crewlet.tracing import parse_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header",
    [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00", f" 00-{TRACE}-{SPAN}-01\t", f"01-{TRACE}-{SPAN}-01-more"],
)
def test_a_callers_span_is_read(header: str) -> None:
    assert parse_traceparent(header) == Trace(TRACE, SPAN)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN[1:]}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_no_traceparent_is_as_if_not_sent(header: str) -> None:
    assert parse_traceparent(header) is None
