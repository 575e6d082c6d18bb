"""What an outcome means for a message, decided without a broker."""

from __future__ import annotations

import pytest

from crewlet.backends.nats.queue_settlement import Acknowledge, Bury, HandBack, headroom, verdict
from crewlet.queue import Ack, Defer, Nak, QueueConfig, nak_backoff_s

SHIPPED = QueueConfig()


@pytest.mark.spec("E-033")
def test_the_shipped_pauses_double_from_one_second_to_thirty() -> None:
    pauses = [nak_backoff_s(SHIPPED, deliveries) for deliveries in range(1, 9)]

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert 9 * 60 <= sum(nak_backoff_s(SHIPPED, deliveries) for deliveries in range(1, 25)) <= 11 * 60


@pytest.mark.spec("E-038", "E-039")
def test_the_shipped_clock_and_budget() -> None:
    assert (SHIPPED.ack_wait_s, SHIPPED.max_deliver) == (1800, 25)


@pytest.mark.spec("E-043")
def test_headroom_counts_further_deliveries() -> None:
    assert [headroom(deliveries, SHIPPED) for deliveries in (1, 24, 25, 26)] == [24, 1, 0, 0]


def test_an_ack_is_an_ack_on_the_last_delivery_too() -> None:
    assert verdict(Ack(), 25, SHIPPED) == Acknowledge()


def test_a_failure_waits_and_a_deferral_does_not() -> None:
    assert verdict(Nak("x"), 3, SHIPPED) == HandBack(4.0)
    assert verdict(Defer("x"), 3, SHIPPED) == HandBack(0.0)


@pytest.mark.spec("E-039", "E-041")
@pytest.mark.parametrize("outcome", [Nak("x"), Defer("x")])
def test_what_comes_back_on_its_last_delivery_is_buried(outcome: Nak | Defer) -> None:
    assert isinstance(verdict(outcome, 24, SHIPPED), HandBack)
    assert isinstance(verdict(outcome, 25, SHIPPED), Bury)
