"""The dead letters of the queue's twin can be looked at, sent again and dropped, as on the real broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.backends.memory import MemoryDeadLetterBox
from crewlet.queue import Nak, QueueConfig, RedriveOutcome
from tests.unit.backends.memory_queue_rig import INBOX, Company, Worker, moment, publish, running_company

pytestmark = pytest.mark.virtual_time

ONE_TRY = QueueConfig(max_deliver=1)


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    async with running_company() as company:
        yield company


async def buried(company: Company, *ids: str) -> MemoryDeadLetterBox:
    client = company.client(config=ONE_TRY)
    await client.subscribe(INBOX, Worker(*[Nak("down")] * len(ids)))
    await publish(client, *ids)
    await moment()
    await client.detach(INBOX)
    return MemoryDeadLetterBox(company.broker)


async def test_pages_give_the_newest_first_and_end(company: Company) -> None:
    box = await buried(company, "m1", "m2", "m3")

    first = await box.page(limit=2)
    second = await box.page(limit=2, before=first.next or "")

    assert [letter.event and letter.event.id for letter in first.letters + second.letters] == ["m3", "m2", "m1"]
    assert (first.next, second.next) == ("2", None)


async def test_a_page_holds_what_its_pattern_covers_and_refuses_a_place_that_no_page_gave(company: Company) -> None:
    box = await buried(company, "m1")

    nothing = await box.page(limit=2, pattern="crewlet.notifications.>")

    assert nothing.letters == ()
    with pytest.raises(ValueError, match="not a `next`"):
        await box.page(limit=2, before="yesterday")


async def test_a_redriven_letter_is_worked_with_its_id_and_is_gone(company: Company) -> None:
    box, worker = await buried(company, "m1"), Worker()
    await company.client("two").subscribe(INBOX, worker)

    redriven = await box.redrive("1")
    await moment()

    assert (redriven.outcome, worker.ids) == (RedriveOutcome.REDRIVEN, ["m1"])
    assert (await box.get("1"), (await box.redrive("1")).outcome) == (None, RedriveOutcome.GONE)


async def test_a_letter_whose_mailbox_is_gone_stays(company: Company) -> None:
    box = await buried(company, "m1")
    await company.client().delete_subscription(INBOX)

    assert (await box.redrive("1")).outcome == RedriveOutcome.MAILBOX_GONE
    assert await box.get("1") is not None


async def test_a_dropped_letter_is_gone(company: Company) -> None:
    box = await buried(company, "m1")

    assert [await box.drop("1"), await box.drop("1")] == [True, False]
    assert company.broker.dead_letters() == []
