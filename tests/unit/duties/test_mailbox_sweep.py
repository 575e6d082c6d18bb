"""What becomes of a removed seat's mailbox, tick by tick."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from crewlet import topics
from crewlet.base import limits
from crewlet.coordination import MAILBOXES, node_resource, seat_resource
from crewlet.queue import Subscription, inbox_of, mailboxes_of
from tests.unit.coordination.lease_rig import TTL_S
from tests.unit.duties.mailbox_rig import DAY_S, TICK_S, Company

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    company = Company()
    yield company
    await company.close()


@pytest.mark.spec("S-140", "S-144", "S-150")
async def test_a_removed_seats_mailboxes_go_with_their_mail_a_day_after_a_sweep_first_missed_it(
    company: Company,
) -> None:
    sweeper = company.sweeper()
    await company.had("ceo")
    await company.had("cto", mail=3)
    await asyncio.sleep(3 * DAY_S)

    missed = await sweeper.tick()
    await asyncio.sleep(DAY_S - 60)
    nothing = await sweeper.tick()
    kept = company.mail_of("cto"), len(company.mailboxes_left("cto"))
    await asyncio.sleep(60)
    retired = await sweeper.tick()

    assert [(line["event"], line["seat"]) for line in missed] == [("seat_mailbox_absent", "cto")]
    assert missed[0]["retired_at"] == (company.rig.clock.now()).isoformat()
    assert nothing == []
    assert kept == (3, 3)
    assert [(line["event"], line["seat"]) for line in retired] == [("seat_mailbox_retired", "cto")]
    assert company.mailboxes_left("cto") == set()
    assert company.mail_of("cto") == 0
    assert await company.record("cto") is None


async def test_the_seats_of_the_company_keep_theirs(company: Company) -> None:
    sweeper = company.sweeper()
    await company.had("ceo")
    await company.gone_for_a_day("cto", sweeper)
    await sweeper.tick()

    assert company.mailboxes_left("ceo") == set(mailboxes_of("ceo"))
    assert company.mail_of("ceo") == 1


@pytest.mark.spec("S-150")
async def test_a_seat_that_returns_is_present_and_a_later_removal_starts_another_day(company: Company) -> None:
    sweeper = company.sweeper()
    await company.had("cto")
    await sweeper.tick()
    await asyncio.sleep(DAY_S - 60)
    company.roster.handles.add("cto")

    returned = await sweeper.tick()
    company.roster.handles.remove("cto")
    missed_again = await sweeper.tick()
    await asyncio.sleep(DAY_S - 60)
    nothing = await sweeper.tick()

    assert [(line["event"], line["seat"]) for line in returned] == [("seat_mailbox_returned", "cto")]
    assert [(line["event"], line["seat"]) for line in missed_again] == [("seat_mailbox_absent", "cto")]
    assert nothing == []
    assert company.mail_of("cto") == 1


@pytest.mark.spec("S-151")
async def test_a_seat_of_the_company_without_a_record_is_registered(company: Company) -> None:
    await company.queue.ensure_subscriptions(mailboxes_of("ceo"))

    await company.sweeper().tick()

    record = await company.record("ceo")
    assert record is not None
    assert record.absent_since is None


@pytest.mark.spec("C-082", "S-147")
async def test_a_mailbox_that_only_the_broker_knows_is_found_missing_at_once_and_retired_after_a_day(
    company: Company,
) -> None:
    sweeper = company.sweeper()
    await company.queue.ensure_subscription(inbox_of("cto"))

    found = await sweeper.tick()
    record = await company.record("cto")
    await asyncio.sleep(DAY_S)
    retired = await sweeper.tick()

    assert [(line["event"], line["seat"]) for line in found if line["seat"] == "cto"] == [
        ("seat_mailbox_discovered", "cto")
    ]
    assert record is not None
    assert record.absent_since is not None
    assert [line["event"] for line in retired] == ["seat_mailbox_retired"]
    assert company.mailboxes_left("cto") == set()


@pytest.mark.spec("S-148")
async def test_a_foreign_group_on_a_seats_topics_is_nobodys_mailbox_here(company: Company) -> None:
    sweeper = company.sweeper()
    foreign = [Subscription(topics.agent_inbox(handle), "audit") for handle in ("cto", "cfo")]
    crossed = Subscription(topics.agent_inbox("cfo"), topics.control_group("cfo"))
    await company.queue.ensure_subscriptions([*foreign, crossed])
    await company.gone_for_a_day("cto", sweeper)
    missed = await company.record("cfo")

    await sweeper.tick()

    assert missed is None
    assert await company.record("cfo") is None
    assert {*foreign, crossed} <= set(company.broker.mailboxes())
    assert company.mailboxes_left("cto") == set()


@pytest.mark.spec("S-149")
async def test_a_listing_that_fails_postpones_what_only_the_broker_knows_and_nothing_else(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)
    await company.queue.ensure_subscription(inbox_of("cfo"))
    sweeper.queue.lists = False

    lines = await sweeper.tick()

    assert [line["event"] for line in lines] == ["seat_mailbox_listing_failed", "seat_mailbox_retired"]
    assert await company.record("cfo") is None
    sweeper.queue.lists = True
    await sweeper.tick()
    assert await company.record("cfo") is not None


@pytest.mark.spec("S-152")
@pytest.mark.parametrize("unknown", ["roster", "registry", "leases"])
async def test_a_tick_that_cannot_know_changes_nothing_and_says_why(company: Company, unknown: str) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)
    await company.had("cfo")
    company.roster.unknown = unknown == "roster"
    sweeper.links[MAILBOXES.name].link.cut = unknown == "registry"
    sweeper.process.stores[0].link.cut = unknown == "leases"
    before = company.buckets[MAILBOXES.name].newest()

    why, said = await sweeper.failed_tick()

    assert company.buckets[MAILBOXES.name].newest() == before
    assert len(company.mailboxes_left("cto")) == 3
    assert said == []
    assert why in {
        "this node has not applied the current revision",
        "mailboxes: cut off",
        "leases: cut off",
    }


@pytest.mark.spec("S-153")
async def test_a_seat_that_a_node_still_holds_keeps_its_mailbox_until_it_is_let_go(company: Company) -> None:
    sweeper, other = company.sweeper(), company.rig.process("b")
    await company.gone_for_a_day("cto", sweeper)
    lease = await company.claimed("cto", other)

    held = await sweeper.tick()
    kept = company.mail_of("cto")
    await other.leases.release(lease)
    retired = await sweeper.tick()

    assert [(line["event"], line["refused"], line["holder"]) for line in held] == [
        ("seat_mailbox_retirement_held", "held", other.owner)
    ]
    assert kept == 1
    assert [line["event"] for line in retired] == ["seat_mailbox_retired"]


@pytest.mark.spec("S-153")
async def test_a_node_at_a_lower_protocol_keeps_every_removed_mailbox_until_it_has_left(company: Company) -> None:
    sweeper, older = company.sweeper(), company.rig.process("old", protocol=3)
    await company.gone_for_a_day("cto", sweeper)
    await older.leases.claim(node_resource("old"), owner=older.owner, ttl_s=TTL_S)

    held = await sweeper.tick()
    await asyncio.sleep(TTL_S + 1)
    retired = await sweeper.tick()

    assert [(line["event"], line["refused"], line["holder"]) for line in held] == [
        ("seat_mailbox_retirement_held", "protocol", older.owner)
    ]
    assert [line["event"] for line in retired] == ["seat_mailbox_retired"]


async def test_a_seat_that_comes_back_during_a_tick_is_not_retired_by_it(company: Company) -> None:
    sweeper = company.sweeper()
    for handle in ("cfo", "cto"):
        await company.had(handle)
    await sweeper.tick()
    await asyncio.sleep(DAY_S)

    async def comes_back(_: object) -> None:
        company.roster.handles.add("cto")

    sweeper.queue.before_delete = comes_back
    await sweeper.tick()

    assert company.mailboxes_left("cfo") == set()
    assert company.mail_of("cto") == 1


async def test_a_seat_of_the_company_whose_mailbox_is_gone_has_it_made_again(company: Company) -> None:
    sweeper = company.sweeper()
    await company.had("ceo")
    await company.queue.delete_subscription(inbox_of("ceo"))

    lines = await sweeper.tick()

    assert [(line["event"], line["topics"]) for line in lines] == [("seat_mailbox_made_again", [inbox_of("ceo").topic])]
    assert company.mailboxes_left("ceo") == set(mailboxes_of("ceo"))


async def test_one_retirement_that_fails_keeps_no_other_from_its_turn(company: Company) -> None:
    sweeper = company.sweeper()
    for handle in ("cfo", "cto", "cxo"):
        await company.had(handle)
    await sweeper.tick()
    await asyncio.sleep(DAY_S)
    await company.run("cfo", "t1")

    why, _ = await sweeper.failed_tick()

    assert why.startswith("cfo: ")
    assert [len(company.mailboxes_left(handle)) for handle in ("cfo", "cto", "cxo")] == [3, 0, 0]


async def test_a_dead_retirement_of_a_seat_that_is_back_is_taken_over(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)
    await company.registry.mark(await company.stored("cto"), by="dead")
    company.roster.handles.add("cto")

    early = await sweeper.tick()
    await asyncio.sleep(limits.MAILBOX_MARK_ABANDONED_S)
    late = await sweeper.tick()

    assert [line["event"] for line in early if line["seat"] == "cto"] == []
    assert [line["event"] for line in late if line["seat"] == "cto"] == ["seat_mailbox_retirement_taken_over"]
    record = await company.record("cto")
    assert record is not None
    assert (record.is_retiring, record.absent_since) == (False, None)
    assert company.mailboxes_left("cto") == set(mailboxes_of("cto"))


@pytest.mark.spec("S-144")
async def test_a_sweep_every_quarter_of_an_hour_retires_at_most_one_tick_late(company: Company) -> None:
    sweeper = company.sweeper()
    await company.had("cto")
    await asyncio.sleep(TICK_S - 1)
    removed_at = company.rig.clock.now()
    missed_at = None
    while (record := await company.record("cto")) is not None:
        missed_at = missed_at or record.absent_since
        await asyncio.sleep(1)
        await sweeper.tick()
        await asyncio.sleep(TICK_S - 1)

    assert missed_at is not None
    assert missed_at >= removed_at
    assert company.rig.clock.now() - missed_at <= timedelta(seconds=DAY_S + 2 * TICK_S)


async def test_no_lease_is_left_behind(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)

    await sweeper.tick()

    assert await sweeper.process.leases.holder(seat_resource("cto")) is None
