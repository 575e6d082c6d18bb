"""Reading where a delivery came from and which one it is."""

from __future__ import annotations

import pytest

from crewlet.backends.nats.consumer_settings import DeliveryMark, came_alone, delivery_mark


@pytest.mark.parametrize(
    "reply",
    [
        "$JS.ACK.S.c.3.17.42.1795970869859759651.4",
        "$JS.ACK._.ACCHASH.S.c.3.17.42.1795970869859759651.4",
        "$JS.ACK.hub.ACCHASH.S.c.3.17.42.1795970869859759651.4.Xy12",
    ],
)
def test_a_mark_is_read_with_and_without_domain_and_account(reply: str) -> None:
    assert delivery_mark(reply) == DeliveryMark("S", "c", deliveries=3, stream_seq=17, consumer_seq=42)


@pytest.mark.parametrize("reply", ["", "_INBOX.a.1", "$JS.ACK.S.c.3", "$JS.ACK.S.c.x.17.42.1.4"])
def test_anything_else_is_no_mark(reply: str) -> None:
    assert delivery_mark(reply) is None


@pytest.mark.parametrize(
    ("reply", "alone"),
    [
        ("$JS.ACK.S.c.1.17.42.1795970869859759651.0", True),
        ("$JS.ACK._.ACCHASH.S.c.1.17.42.1795970869859759651.0", True),
        ("$JS.ACK.S.c.1.17.42.1795970869859759651.3", False),
        ("$JS.ACK.S.c.2.17.42.1795970869859759651.0", False),
        ("_INBOX.a.1", False),
    ],
)
def test_a_first_delivery_with_nothing_behind_it_came_alone(reply: str, alone: bool) -> None:
    assert came_alone(reply) is alone
