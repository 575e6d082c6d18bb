"""The broker and its only node are started again: what waited is worked, and a mailbox left spoiled is repaired."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream, JetStreamQueue
from crewlet.backends.nats.jetstream_types import ns
from crewlet.base.errors import Unavailable
from crewlet.queue import Subscription
from crewlet.testing.brokers import connected_wire, running_broker
from crewlet.testing.contracts.queue_handlers import Recorder
from crewlet.testing.waiting import wait_until
from tests.broker.queue.rig import INBOX, SCALED, event, place

pytestmark = pytest.mark.slow


@pytest.mark.spec("E-157")
async def test_what_waited_for_each_mailbox_is_worked_after_a_restart(tmp_path: Path) -> None:
    auditors, worked = Subscription(INBOX.topic, "auditors"), Recorder()
    async with running_broker(store_dir=tmp_path) as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage="file")
        await queue.start()
        await queue.ensure_subscriptions([INBOX, auditors])
        await queue.subscribe(INBOX, worked)
        await queue.publish(INBOX.topic, event("m1"))
        await worked.handled(1)
        await queue.wait_idle(INBOX)
        await queue.detach(INBOX)
        await queue.publish(INBOX.topic, event("m2"))
        await queue.close()

    owner, auditor = Recorder(), Recorder()
    async with running_broker(store_dir=tmp_path) as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage="file")
        await queue.start()
        await queue.subscribe(INBOX, owner)
        await queue.subscribe(auditors, auditor)
        await owner.handled(1)
        await auditor.handled(2)
        await queue.close()

    assert (owner.ids, auditor.ids) == (["m2"], ["m1", "m2"])


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


async def test_mail_that_a_memory_broker_accepts_after_its_crash_waits_for_the_mailboxes() -> None:
    """A stream made again before its mailboxes would take what is published, and keep nothing of it."""
    worked = Recorder()
    others = [Subscription(topics.agent_inbox(f"seat{number}"), f"agent-seat{number}") for number in range(200)]
    async with running_broker() as broker, connected_wire(broker) as wire:
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=SCALED, storage="memory")
        await queue.start()
        await queue.ensure_subscriptions(others)
        await queue.subscribe(INBOX, worked)
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGKILL)
        await wait_until(lambda: not wire.connected, what="the broken link")

        accepted: list[str] = []
        while len(accepted) < 200:
            try:
                await queue.publish(INBOX.topic, event(f"m{len(accepted)}"))
            except Unavailable:
                continue
            accepted.append(f"m{len(accepted)}")
        await worked.handled(200)
        await queue.close()

    assert {*worked.ids} == {*accepted}
