"""A killed client of the queue's twin stops altogether; a message that kills each of its holders is buried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.backends.memory_queue_rig import CONFIG, INBOX, Worker, moment, publish, running_company

pytestmark = pytest.mark.virtual_time

MAIL_PAGE = Path(__file__).parents[3] / "docs" / "mail.md"


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


@pytest.mark.spec("E-042")
async def test_a_message_that_kills_each_of_its_holders_ends_as_poison_does() -> None:
    async with running_company() as company:
        await company.client().ensure_subscription(INBOX)
        await publish(company.client(), "m1")
        lives = [company.client(f"life-{life}") for life in range(CONFIG.max_deliver)]

        for client in lives:
            await client.release_held(INBOX)
            await client.subscribe(INBOX, Worker(stays=True))
            await moment()
            client.crash()
        await company.client("heir").release_held(INBOX)
        await moment()

        assert [letter.deliveries for letter in company.broker.dead_letters(INBOX)] == [CONFIG.max_deliver]


@pytest.mark.spec("E-042")
def test_the_page_on_mail_says_that_a_crash_loop_looks_like_poison() -> None:
    assert "**A crash loop looks like poison.**" in MAIL_PAGE.read_text(encoding="utf-8")
