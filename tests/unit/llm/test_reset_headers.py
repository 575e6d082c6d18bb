"""When a limit ends, in the words of different vendors."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crewlet.llm.reset_headers import reset_after_s, wait_s

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        ("6m0s", 360),
        ("1h2m3s", 3723),
        ("20ms", 0.02),
        ("1s", 1),
        ("2d", 172_800),
        ("Sun, 01 Mar 2026 12:05:00 GMT", 300),
        ("2026-03-01T12:01:00Z", 60),
        (str(int(NOW.timestamp()) + 90), 90),
        (str(int(NOW.timestamp() * 1000) + 90_000), 90),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
    ],
)
def test_a_value_is_read_as_seconds_from_now(text: str, seconds: float) -> None:
    assert wait_s(text, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-5", "nan", "inf", "m", "5 apples"])
def test_what_says_nothing_reads_as_nothing(text: str) -> None:
    assert wait_s(text, NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7", "x-ratelimit-reset-tokens": "6m0s"}, 7),
        ({"retry-after-ms": "2500", "retry-after": "3"}, 2.5),
        ({"x-ratelimit-reset": "90"}, 90),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "9000",
            },
            1,
        ),
        ({"anthropic-ratelimit-input-tokens-reset": "2026-03-01T12:02:00Z"}, 120),
    ],
)
def test_the_header_about_this_call_comes_first_and_the_used_up_limit_next(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert reset_after_s(headers, NOW) == (None if seconds is None else pytest.approx(seconds))
