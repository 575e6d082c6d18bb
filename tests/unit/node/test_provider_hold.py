"""While every key of a seat's models rests, its mail waits at the broker, and comes once a key serves again."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.backends.memory.records import MemoryBucket
from crewlet.base.errors import Unavailable
from crewlet.coordination import LEDGER
from crewlet.events import Event
from crewlet.inbox import partition_of
from crewlet.llm import Bench, FailureKind, build_models
from crewlet.llm.bag import bag_of
from crewlet.llm.provider_config import Cooldowns
from crewlet.node.company_parts import provider_configs
from crewlet.node.provider_hold import KEYS_REST, ProviderHold, rests_until
from crewlet.node.seat_holds import SeatHolds
from crewlet.node.turn_runner import CompanyEpoch
from crewlet.queue import Defer, Subscription, inbox_of
from crewlet.testing import SeededIds, VirtualClock, wait_until
from crewlet.turns import TurnEngine
from tests.unit.inbox.inbox_kit import Node, event
from tests.unit.node.companies import acme, source

pytestmark = pytest.mark.virtual_time

INBOX = inbox_of("ceo")
KEYS = {"ONE": "sk-one", "TWO": "sk-two"}
HOUR_S = 3600.0


async def publish(_topic: str, event: Event) -> Event:
    return event


def entry(*names: str) -> dict[str, object]:
    return {"type": "openai", "model": "m", "api_keys": [f"${{{name}}}" for name in names]}


def working(**chains: object) -> CompanyEpoch:
    """A company whose ceo works by these chains, on three entries: of both keys, of the first, of the second."""
    llm = {"both": entry("ONE", "TWO"), "first": entry("ONE"), "second": entry("TWO")}
    company = source(acme(roles=[{"name": "Chief", "handle": "ceo", **chains}], providers={"llm": llm}), KEYS)
    clock = VirtualClock()
    models = build_models(provider_configs(company, frozenset()), resolve=company.resolve, clock=clock)
    return CompanyEpoch(company.organization, models, frozenset(), TurnEngine(publish, clock, SeededIds()))


def rest(epoch: CompanyEpoch, provider: str, name: str, *, for_s: float = HOUR_S) -> datetime:
    """The vendor turned this key of the entry away."""
    until = VirtualClock().now() + timedelta(seconds=for_s)
    hint = bag_of(provider, (KEYS[name],), Cooldowns()).slots[0].credential.hint
    assert epoch.models.rest(Bench(provider, hint, until, FailureKind.RATE_LIMITED))
    return until


class Queue(MemoryQueue):
    """Takes its time over a hold."""

    holds_after_s = 0.0

    async def hold(self, subscription: Subscription, name: str) -> None:
        await asyncio.sleep(self.holds_after_s)
        await super().hold(subscription, name)


class SeatHere:
    """The ceo's seat on one node."""

    def __init__(self, epoch: CompanyEpoch) -> None:
        self.broker = MemoryBroker(VirtualClock())
        self.epoch = epoch
        self.queue = Queue(self.broker, node="one")
        self.holds = SeatHolds(self.queue, lambda _: 7)
        self.hold = ProviderHold(lambda: self.epoch, self.holds, VirtualClock())
        self.node = Node(MemoryBucket(LEDGER, VirtualClock()), holds=self.hold)

    async def attach(self) -> None:
        self.holds.open("ceo")
        await self.queue.subscribe_batch(INBOX, self.node.inbox.handle, partition=partition_of)

    async def gets_mail(self) -> None:
        await self.queue.publish(INBOX.topic, event())

    def deliveries(self) -> list[int]:
        return [mail.deliveries for mail in self.broker.retained(INBOX)]


async def test_mail_is_delivered_once_and_comes_back_when_the_key_serves_again() -> None:
    seat = SeatHere(working(llm=["first"]))
    await seat.attach()
    rest(seat.epoch, "first", "ONE")

    await seat.gets_mail()
    await asyncio.sleep(HOUR_S - 1)
    waiting, held = seat.deliveries(), seat.holds.of("ceo")
    await asyncio.sleep(2)

    assert (waiting, held) == ([1], {KEYS_REST})
    assert len(seat.node.triggers) == 1
    assert seat.holds.of("ceo") == set()
    await seat.hold.close()


async def test_a_bench_that_is_extended_meanwhile_is_waited_for() -> None:
    seat = SeatHere(working(llm=["first"]))
    await seat.attach()
    rest(seat.epoch, "first", "ONE", for_s=600)
    await seat.gets_mail()
    await asyncio.sleep(60)

    rest(seat.epoch, "first", "ONE")
    await asyncio.sleep(HOUR_S - 60)
    early = len(seat.node.triggers)
    await asyncio.sleep(120)

    assert (early, len(seat.node.triggers), seat.deliveries()) == (0, 1, [])
    await seat.hold.close()


async def test_a_company_with_another_key_works_at_once() -> None:
    seat = SeatHere(working(llm=["first"]))
    await seat.attach()
    rest(seat.epoch, "first", "ONE")
    await seat.gets_mail()
    await asyncio.sleep(60)

    seat.epoch = working(llm=["second"])
    await seat.hold.company_changed()

    await wait_until(lambda: len(seat.node.triggers) == 1, what="the turn")
    await seat.hold.close()


async def test_a_company_that_comes_while_the_hold_is_being_taken_leaves_none_behind() -> None:
    seat = SeatHere(working(llm=["first"]))
    await seat.attach()
    seat.queue.holds_after_s = 1
    rest(seat.epoch, "first", "ONE")
    taking = asyncio.create_task(seat.hold.refuses("ceo"))
    await asyncio.sleep(0.5)

    seat.epoch = working(llm=["second"])
    await seat.hold.company_changed()
    refused = await taking
    await seat.gets_mail()

    await wait_until(lambda: len(seat.node.triggers) == 1, what="the turn")
    assert refused is None
    await seat.hold.close()


@pytest.mark.spec("E-047")
async def test_a_hold_that_the_queue_refuses_defers_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    seat = SeatHere(working(llm=["first"]))
    seat.holds.open("ceo")
    rest(seat.epoch, "first", "ONE")

    async def away(*_: object) -> None:
        raise Unavailable("the broker is away")

    monkeypatch.setattr(seat.queue, "hold", away)

    with capture_logs():
        outcome = await seat.hold.refuses("ceo")

    assert isinstance(outcome, Defer)
    await seat.hold.close()


@pytest.mark.parametrize(
    ("chains", "resting", "waits"),
    [
        ({"llm": ["both"]}, [("both", "ONE")], False),
        ({"llm": ["both"]}, [("both", "ONE"), ("both", "TWO")], True),
        ({"llm": ["first", "second"]}, [("first", "ONE")], False),
        ({"llm": ["first", "second"]}, [("first", "ONE"), ("second", "TWO")], True),
        ({"llm": ["first"]}, [("both", "ONE")], False),
        ({"llm": ["first"], "llm_review": "second"}, [("second", "TWO")], True),
    ],
)
async def test_a_seat_waits_where_no_key_of_what_works_or_of_what_reviews_may_be_used(
    chains: dict[str, object], resting: list[tuple[str, str]], waits: bool
) -> None:
    epoch = working(**chains)

    for provider, name in resting:
        rest(epoch, provider, name)

    assert (rests_until(epoch, "ceo", VirtualClock().now()) is not None) is waits


async def test_the_first_key_of_a_chain_counts_and_of_two_chains_the_later() -> None:
    epoch = working(llm=["both"], llm_review="first")
    rest(epoch, "both", "ONE", for_s=100)
    rest(epoch, "both", "TWO", for_s=200)
    later = rest(epoch, "first", "ONE", for_s=150)

    assert rests_until(epoch, "ceo", VirtualClock().now()) == later
