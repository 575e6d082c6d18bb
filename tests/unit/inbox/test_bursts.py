"""How many turns a burst costs, on the twin in virtual time: what waits is one turn a conversation, up to the cap."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.backends.memory.records import MemoryBucket
from crewlet.coordination import LEDGER
from crewlet.inbox import TurnOutcome, partition_of
from crewlet.queue import BatchOptions, inbox_of
from crewlet.testing import VirtualClock, wait_until
from tests.unit.inbox.inbox_kit import DONE, Node, event
from tests.unit.inbox.wakes import SOURCES, body_of, changed, said

pytestmark = [pytest.mark.virtual_time, pytest.mark.slow]

INBOX = inbox_of("ceo")
TURN_S = 120.0


@dataclass
class Seat:
    """A seat at its inbox; each of its turns takes two minutes."""

    node: Node
    queue: MemoryQueue
    options: BatchOptions

    async def attach(self) -> None:
        async def works() -> TurnOutcome:
            await asyncio.sleep(TURN_S)
            return DONE

        self.node.does = works
        await self.queue.subscribe_batch(
            INBOX, self.node.inbox.handle, partition=partition_of, options=lambda: self.options
        )

    async def idle(self) -> None:
        async def empty() -> bool:
            state = await self.queue.mailbox(INBOX)
            return state is not None and state.pending == state.held == 0

        await wait_until(empty, what="an empty inbox", timeout_s=100 * TURN_S)

    @property
    def turns(self) -> list[int]:
        """How many events each turn was for."""
        return [len(trigger.events) for trigger in self.node.triggers]


@pytest.fixture
async def seat() -> Seat:
    clock = VirtualClock()
    queue = MemoryQueue(MemoryBroker(clock), node="one")
    return Seat(Node(MemoryBucket(LEDGER, clock), sources=SOURCES, queue=queue), queue, BatchOptions())


async def starts_a_turn(seat: Seat) -> None:
    await seat.queue.publish(INBOX.topic, event(event_id="first"))
    await wait_until(lambda: len(seat.node.triggers) == 1, what="the first turn")


async def twenty_four_on_four(seat: Seat) -> None:
    for number in range(24):
        issue = f"P-{number % 4}"
        await seat.queue.publish(INBOX.topic, await changed("comment", "x", f"c{number}", at_s=number, issue=issue))


@pytest.mark.spec("E-107")
@pytest.mark.parametrize(("cap", "turns"), [(20, 8), (100, 4)])
async def test_twenty_four_events_on_four_conversations_cost_a_turn_a_conversation_and_drain(
    seat: Seat, cap: int, turns: int
) -> None:
    seat.options = BatchOptions(max_events=cap)
    await seat.attach()
    await starts_a_turn(seat)

    await twenty_four_on_four(seat)
    await seat.idle()

    assert len(seat.turns[1:]) == turns
    assert sum(seat.turns[1:]) == 24


@pytest.mark.spec("E-107")
async def test_a_changed_cap_holds_from_the_next_haul_on(seat: Seat) -> None:
    seat.options = BatchOptions(max_events=1)
    await seat.attach()
    await starts_a_turn(seat)
    await twenty_four_on_four(seat)

    seat.options = BatchOptions(max_events=100)
    await seat.idle()

    assert seat.turns[1:] == [6, 6, 6, 6]


@pytest.mark.spec("E-108")
async def test_a_burst_at_an_idle_seat_costs_two_turns_at_most(seat: Seat) -> None:
    await seat.attach()

    for number in range(10):
        await seat.queue.publish(INBOX.topic, await said("hi", f"m{number}", at_s=number))
        await asyncio.sleep(1)
    await seat.idle()

    assert seat.turns == [1, 9]


@pytest.mark.spec("E-106")
async def test_with_a_window_a_burst_at_an_idle_seat_is_one_turn(seat: Seat) -> None:
    seat.options = BatchOptions(linger_s=15)
    await seat.attach()

    for number in range(10):
        await seat.queue.publish(INBOX.topic, await said("hi", f"m{number}", at_s=number))
        await asyncio.sleep(1)
    await seat.idle()

    assert seat.turns == [10]


@pytest.mark.spec("E-110")
async def test_a_burst_of_any_size_is_told_whole(seat: Seat) -> None:
    """What coalesces is context kept: each of sixty messages is told to some turn."""
    await seat.attach()
    await starts_a_turn(seat)

    for number in range(60):
        await seat.queue.publish(INBOX.topic, await said(f"text {number}.", f"m{number}", at_s=number))
    await seat.idle()

    told = [trigger.task for trigger in seat.node.triggers]
    assert all(any(f"text {number}." in task for task in told) for number in range(60))


@pytest.mark.spec("E-104")
async def test_a_batch_with_a_spoilt_event_is_worked_to_its_end_each_event_once(seat: Seat) -> None:
    spoilt = await changed("issue_updated", "a", "c1")
    spoilt = replace(spoilt, data=body_of(spoilt, metadata={}))
    await seat.attach()
    await starts_a_turn(seat)

    with capture_logs():
        for each in (spoilt, *[await changed("comment", "b", f"c{n}", at_s=n) for n in range(2, 6)]):
            await seat.queue.publish(INBOX.topic, each)
        await seat.idle()

    worked = [each.id for trigger in seat.node.triggers[1:] for each in trigger.events]
    assert sorted(worked) == ["c1", "c2", "c3", "c4", "c5"]
