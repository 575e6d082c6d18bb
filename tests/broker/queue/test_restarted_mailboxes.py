"""A release of held mail that died halfway, and then the broker too: the next start repairs the mailbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.backends.nats import JetStream, JetStreamQueue
from crewlet.backends.nats.jetstream_types import ns
from crewlet.testing.brokers import connected_wire, running_broker
from tests.broker.queue.rig import INBOX, SCALED, place

pytestmark = pytest.mark.slow


async def test_an_ack_clock_left_lowered_over_a_restart_is_repaired(tmp_path: Path) -> None:
    async with running_broker(store_dir=tmp_path, sync_interval_s=60.0) as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage="file")
        await queue.start()
        await queue.ensure_subscription(INBOX)
        await queue.close()
        await JetStream(wire).consumer_change(*place(INBOX), {"ack_wait": ns(0.001)})

    async with running_broker(store_dir=tmp_path, sync_interval_s=60.0) as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage="file")
        await queue.start()
        await queue.ensure_subscription(INBOX)
        info = await JetStream(wire).consumer_info(*place(INBOX))
        await queue.close()

    assert info is not None
    assert info.config.ack_wait == ns(SCALED.ack_wait_s)
