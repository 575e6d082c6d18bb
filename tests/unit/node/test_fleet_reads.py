"""What the fleet knows of one message is put together from every node's log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.base.errors import Unavailable
from crewlet.base.trace import Trace
from crewlet.events import Event, new_event
from crewlet.events.types import AgentTurnStarted
from crewlet.node.coverage import Coverage, NodeAnswered
from crewlet.node.fleet_reads import FleetReads
from crewlet.queue import QueueConfig
from crewlet.store import Database, EventLog
from crewlet.testing import SeededIds, VirtualClock

TRACE = Trace("t" * 32, "s" * 16, "")


class Fleet:
    """Nodes with a log each, on one broker; ``alive`` are those that each of them believes in."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.alive = ["a", "b"]
        self._broker = MemoryBroker(VirtualClock())
        self._folder = folder
        self._stack = stack
        self._made = 0

    async def node(self, name: str) -> tuple[FleetReads, EventLog]:
        queue = MemoryQueue(self._broker, node=name, config=QueueConfig())
        self._stack.push_async_callback(queue.close)
        database = await self._stack.enter_async_context(Database(self._folder / f"{name}.db"))
        log = EventLog(database)
        self._stack.push_async_callback(log.close)
        reads = FleetReads(queue, log, name, lambda: self.alive)
        await reads.serve(self._stack)
        return reads, log

    async def babbles(self, name: str) -> None:
        """A node whose answers nobody can read."""
        queue = MemoryQueue(self._broker, node=name, config=QueueConfig())
        self._stack.push_async_callback(queue.close)

        async def babble(_wanted: bytes) -> bytes:
            return b"?"

        for subject in ("event", "chain"):
            served = await queue.serve(subject, babble)
            self._stack.push_async_callback(served.close)

    async def happens_on(self, log: EventLog) -> Event:
        """Something of the chain that this node's log alone holds."""
        self._made += 1
        body = AgentTurnStarted(turn_id=f"turn-{self._made}", agent_handle="ceo")
        event = new_event(body, trace=TRACE, now=VirtualClock().now(), ids=SeededIds(self._made), source="test")
        await log.listener()(topics.event_topic(event.type), event)
        return event


def both(a: str, b: str) -> tuple[NodeAnswered, ...]:
    return tuple(NodeAnswered(id=node, answered=not why, error=why) for node, why in (("a", a), ("b", b)))


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        yield Fleet(tmp_path, stack)


async def test_a_chain_is_every_nodes_events_each_once(fleet: Fleet) -> None:
    first, first_log = await fleet.node("a")
    second, second_log = await fleet.node("b")
    one, other = await fleet.happens_on(first_log), await fleet.happens_on(second_log)

    chains = [await reads.chain(TRACE.trace_id) for reads in (first, second)]

    assert [sorted(event.id for event in chain.events) for chain in chains] == [sorted([one.id, other.id])] * 2
    assert [chain.coverage for chain in chains] == [Coverage(nodes=both("", ""), complete=True)] * 2


async def test_an_event_is_found_wherever_it_was_recorded(fleet: Fleet) -> None:
    first, _ = await fleet.node("a")
    _, second_log = await fleet.node("b")
    there = await fleet.happens_on(second_log)

    found = await first.event(there.id)

    assert found is not None
    assert found.id == there.id
    assert await first.event("nowhere") is None


@pytest.mark.slow
async def test_a_silent_peer_costs_a_bounded_wait_and_its_own_part(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    first, first_log = await fleet.node("a")
    own = await fleet.happens_on(first_log)

    chain = await first.chain(TRACE.trace_id)

    assert [event.id for event in chain.events] == [own.id]
    assert chain.coverage == Coverage(nodes=both("", "no answer in time"), complete=False)
    assert "fleet_read_incomplete" in capsys.readouterr().out


@pytest.mark.slow
async def test_an_event_that_nobody_has_is_unknown_while_a_node_says_nothing(fleet: Fleet) -> None:
    first, _ = await fleet.node("a")

    with pytest.raises(Unavailable, match=r"b \(no answer in time\)"):
        await first.event("nowhere")


async def test_an_answer_that_cannot_be_read_is_named_and_is_no_answer(fleet: Fleet) -> None:
    first, first_log = await fleet.node("a")
    own = await fleet.happens_on(first_log)
    await fleet.babbles("b")

    chain = await first.chain(TRACE.trace_id)

    assert [event.id for event in chain.events] == [own.id]
    assert [each.answered for each in chain.coverage.nodes] == [True, False]
    assert "unreadable" in chain.coverage.missing()


async def test_a_node_alone_asks_nobody(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.alive = ["a"]
    first, first_log = await fleet.node("a")
    own = await fleet.happens_on(first_log)

    assert [event.id for event in (await first.chain(TRACE.trace_id)).events] == [own.id]
    assert "fleet_read" not in capsys.readouterr().out
