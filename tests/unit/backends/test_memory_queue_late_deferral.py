"""A deferral of the queue's twin ends its haul, however late the broker hears of it."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryQueue
from crewlet.queue import Ack, BatchOptions, Defer
from tests.unit.backends.memory_queue_rig import INBOX, Worker, moment, publish, running_company

pytestmark = pytest.mark.virtual_time


async def test_an_unquiesce_before_the_line_is_up_again_leaves_an_attachment_that_works() -> None:
    async with running_company() as company:
        worker, client, other = (
            Worker(Defer("moved"), Ack(), Ack(), stays=True),
            company.client(),
            company.client("two"),
        )
        await publish_a_haul(other)
        await client.subscribe_batch(
            INBOX, worker.batch, partition=lambda event: event.id, options=lambda: BatchOptions(max_events=2)
        )
        await moment()
        client.cut()
        worker.release.set()
        await moment()

        client.heal()
        await client.unquiesce(INBOX)
        await moment()

        assert worker.ids == ["a", "a", "b"]


async def publish_a_haul(client: MemoryQueue) -> None:
    await client.ensure_subscription(INBOX)
    await publish(client, "a", "b")
