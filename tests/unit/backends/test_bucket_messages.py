"""What a delivery's reply subject says, and which filters one pass needs. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crewlet.backends.nats.bucket_messages import place
from crewlet.backends.nats.bucket_patterns import checked_patterns

AT = datetime(2030, 1, 1, 0, 0, 0, 123457, tzinfo=UTC)
NS = 1_893_456_000_123_456_500


@pytest.mark.parametrize(
    "reply",
    [
        f"$JS.ACK.KV_b.c.1.42.7.{NS}.3",
        f"$JS.ACK.domain.hash.KV_b.c.1.42.7.{NS}.3",
        f"$JS.ACK.domain.hash.KV_b.c.1.42.7.{NS}.3.token",
    ],
)
def test_a_delivery_says_where_it_stands_with_and_without_a_domain(reply: str) -> None:
    assert place(reply) == (7, 42, AT, 3)


def test_the_last_delivery_says_that_none_waits_behind_it() -> None:
    assert place(f"$JS.ACK.KV_b.c.1.42.7.{NS}.0") == (7, 42, AT, 0)


@pytest.mark.parametrize(
    "reply", ["", "_INBOX.1", "$JS.FC.KV_b.c.1.2.3.4.5", "$JS.ACK.KV_b.c.1.x.7.5.3", "$JS.ACK.a.b"]
)
def test_another_subject_says_nothing(reply: str) -> None:
    assert place(reply) is None


@pytest.mark.parametrize(
    ("patterns", "needed"),
    [
        (["seat.>"], ["seat.>"]),
        (["seat.>", "node.*"], ["seat.>", "node.*"]),
        (["seat.>", "seat.>"], ["seat.>"]),
        (["seat.a", "seat.>", "seat.*", "seat.*.>"], ["seat.>"]),
        (["seat.a", "seat.*"], ["seat.*"]),
        (["seat.*", "seat.*.b"], ["seat.*", "seat.*.b"]),
        (["config", "config.>"], ["config", "config.>"]),
    ],
)
def test_only_patterns_that_no_other_covers_are_needed(patterns: list[str], needed: list[str]) -> None:
    assert checked_patterns(patterns) == needed


@pytest.mark.parametrize("patterns", [["a.*.x", "a.y.*"], ["a.*", "a.b.>", "a.*.c"], ["a.b.>", "a.*.c"]])
def test_patterns_that_cover_some_keys_in_common_are_refused(patterns: list[str]) -> None:
    with pytest.raises(ValueError, match="in common"):
        checked_patterns(patterns)


def test_no_pattern_is_none() -> None:
    with pytest.raises(ValueError, match="needs a pattern"):
        checked_patterns([])
