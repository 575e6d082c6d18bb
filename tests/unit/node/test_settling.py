"""Once a turn is done with, its answer goes to whoever asked, and to nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crewlet.a2a import A2aService, answer_wake_id
from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.base.fence import OpenFence
from crewlet.base.ids import TurnId, WorkKey
from crewlet.base.trace import Trace
from crewlet.coordination import CHANNELS, Channels, ChannelStatus
from crewlet.events import Event, new_event
from crewlet.events.types import A2aMessage, A2aRequest
from crewlet.inbox import Decision, Reply, Trigger, TurnOutcome
from crewlet.node.turn_runner import CompanyEpoch, TurnRunner
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tools import CallContext

pytestmark = pytest.mark.virtual_time

TRACE = Trace("a" * 32, "b" * 16)
DONE = TurnOutcome(turn_id=TurnId("t2"), decision=Decision.DONE, finished=True, artifact="SQLite")


class World:
    """A ceo who has asked the cto, and the runner of the cto's turns."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.published: list[tuple[str, Event]] = []
        self.channels = Channels(MemoryRecordStore(MemoryBucket(CHANNELS, clock)))
        self.broken = False
        self._asks = A2aService(channels=self.channels, publish=self._publish, clock=clock, ids=SeededIds(3))
        self.runner = TurnRunner(self._no_company, self._asks)
        self._now = clock.now()

    async def ask(self) -> Trigger:
        """The trigger that the cto's turn was woken by."""
        context = CallContext(
            handle="ceo", turn_id="t1", work_key="w1", fence=OpenFence(), trace=TRACE, task="Plan", reply="engine"
        )
        channel = await self._asks.ask(context, "cto", "Which database?")
        self.published.clear()
        return self.trigger(channel.channel_id)

    def trigger(self, channel_id: str) -> Trigger:
        body = A2aRequest(channel_id=channel_id, requester="ceo", target="cto", brief="Which database?")
        wake = new_event(body, trace=TRACE, now=self._now, ids=SeededIds(1))
        return Trigger(
            handle="cto",
            events=(wake,),
            work_key=WorkKey("w2"),
            reply=Reply.ENGINE,
            trace=TRACE,
            answers_channel=channel_id,
        )

    @property
    def answers(self) -> list[tuple[str, A2aMessage]]:
        return [(topic, said.data) for topic, said in self.published if isinstance(said.data, A2aMessage)]

    async def _publish(self, topic: str, event: Event) -> Event:
        if self.broken:
            raise Unavailable("the broker is away")
        self.published.append((topic, event))
        return event

    def _no_company(self) -> CompanyEpoch:
        raise AssertionError("settling needs no company")


@pytest.fixture
async def world() -> World:
    return World()


async def test_a_turn_that_was_asked_for_answers_its_channel(world: World) -> None:
    trigger = await world.ask()

    await world.runner.settle(trigger, DONE)

    ((topic, answer),) = world.answers
    assert topic == "crewlet.agent.ceo.inbox"
    assert (answer.content, answer.responder, answer.failed) == ("SQLite", "cto", False)
    channel = await world.channels.get(trigger.answers_channel)
    assert channel is not None
    assert (channel.status, channel.closed_turn_id) == (ChannelStatus.CLOSED, "t2")


async def test_a_turn_that_waits_for_a_colleague_itself_answers_nothing_yet(world: World) -> None:
    trigger = await world.ask()

    await world.runner.settle(trigger, replace(DONE, artifact="I have asked eng", asks=("c2",)))

    assert world.published == []
    channel = await world.channels.get(trigger.answers_channel)
    assert channel is not None
    assert channel.status is ChannelStatus.OPEN


async def test_a_turn_that_nobody_asked_for_answers_nobody(world: World) -> None:
    await world.runner.settle(world.trigger(""), DONE)

    assert world.published == []


@pytest.mark.parametrize(
    ("outcome", "content", "failed"),
    [
        (replace(DONE, decision=Decision.FAILED, artifact="half of it"), "half of it", True),
        (replace(DONE, decision=Decision.FAILED, artifact="", error="no model"), "No answer: no model", True),
        (replace(DONE, decision=Decision.DONE, finished=False, artifact="", error_kind="x"), "No answer: x", True),
        (replace(DONE, decision=Decision.STOPPED, artifact=""), "No answer: stopped", True),
        (replace(DONE, decision=Decision.SKIPPED, artifact=""), "No answer: skipped", False),
    ],
)
async def test_whoever_asked_is_never_left_waiting(
    world: World, outcome: TurnOutcome, content: str, failed: bool
) -> None:
    trigger = await world.ask()

    await world.runner.settle(trigger, outcome)

    assert [(answer.content, answer.failed) for _, answer in world.answers] == [(content, failed)]


async def test_an_answer_that_could_not_be_sent_is_sent_by_the_repeat_and_once(world: World) -> None:
    trigger = await world.ask()
    world.broken = True
    with pytest.raises(Unavailable):
        await world.runner.settle(trigger, DONE)
    world.broken = False

    await world.runner.settle(trigger, DONE)
    await world.runner.settle(trigger, DONE)

    wakes = [said.id for _, said in world.published if isinstance(said.data, A2aMessage)]
    assert wakes == [answer_wake_id(trigger.answers_channel)]


async def test_an_ask_that_nobody_recorded_is_answered_to_nobody(world: World) -> None:
    await world.runner.settle(world.trigger("no-such-channel"), DONE)

    assert world.published == []
