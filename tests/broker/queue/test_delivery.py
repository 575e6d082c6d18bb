"""How soon a message comes back, on a real broker; in which order is the contract's suite."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.queue import Defer, Nak, QueueConfig
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from tests.broker.queue.rig import INBOX, Company, event

pytestmark = pytest.mark.slow


@pytest.mark.spec("E-033")
async def test_the_pause_after_a_failure_doubles_up_to_its_bound(company: Company) -> None:
    paced = QueueConfig(max_deliver=5, nak_backoff_first_s=0.2, nak_backoff_max_s=0.8)
    node = await company.node(config=paced)
    handler = Recorder(*[Nak()] * 4)
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))

    await handler.handled(5)

    gaps = [later - sooner for sooner, later in zip(handler.started_at_s, handler.started_at_s[1:], strict=False)]
    for gap, expected in zip(gaps, [0.2, 0.4, 0.8, 0.8], strict=True):
        assert expected * 0.9 <= gap <= expected + 0.19


async def test_a_deferral_is_handed_over_at_once(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    busy, successor = Busy(Defer("the lease moved")), Recorder()
    await first.queue.subscribe(INBOX, busy)
    await first.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()
    await second.queue.subscribe(INBOX, successor)

    released_at = asyncio.get_running_loop().time()
    busy.release.set()
    await successor.handled(1)

    assert successor.started_at_s[0] - released_at < 0.1
