"""A killed client of the queue's twin stops altogether, whatever it had let go of before."""

from __future__ import annotations

import pytest

from tests.unit.backends.memory_queue_rig import INBOX, Worker, moment, publish, running_company

pytestmark = pytest.mark.virtual_time


async def test_a_handler_that_outlived_its_detach_dies_with_its_process() -> None:
    async with running_company() as company:
        client, worker = company.client(), Worker(stays=True)
        await client.subscribe(INBOX, worker)
        await publish(client, "a")
        await moment()
        await client.detach(INBOX)
        running_before = client.task_count

        client.crash()
        await moment()

        assert (worker.ids, running_before, client.task_count) == (["a"], 1, 0)
