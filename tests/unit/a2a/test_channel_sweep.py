"""Asks that no turn ended are closed after an idle hour, and forgotten a week after their close."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from crewlet import topics
from crewlet.a2a import A2aService, Answer, AnswerFate, ChannelSweep, answer_wake_id
from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.base.fence import OpenFence
from crewlet.base.trace import Trace
from crewlet.coordination import CHANNELS, Channel, Channels, ChannelStatus, opened
from crewlet.events import Event
from crewlet.events.types import A2aChannelClosed
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time

HOUR_S, DAY_S = 3600.0, 24 * 3600.0


class World:
    """The channels, the sweep and the answering side, and what was published."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.store = MemoryRecordStore(MemoryBucket(CHANNELS, self.clock))
        self.channels = Channels(self.store)
        self.published: list[tuple[str, Event]] = []
        self.broker_is_away = False
        said = {"channels": self.channels, "publish": self.publish, "clock": self.clock, "ids": SeededIds(1)}
        self.sweep = ChannelSweep(**said)  # pyright: ignore[reportArgumentType]
        self.asks = A2aService(**said)  # pyright: ignore[reportArgumentType]

    async def publish(self, topic: str, event: Event) -> Event:
        if self.broker_is_away:
            raise Unavailable("the broker is away")
        self.published.append((topic, event))
        return event

    async def opened(self, channel_id: str = "c1") -> Channel:
        channel = opened(
            channel_id=channel_id,
            requester="ceo",
            target="cto",
            at=self.clock.now(),
            brief="which?",
            trace_id="a" * 32,
            turn_id="t1",
        )
        return await self.channels.open(channel)

    async def tick(self) -> None:
        await self.sweep.run(OpenFence())

    def closes(self) -> list[A2aChannelClosed]:
        return [event.data for _, event in self.published if isinstance(event.data, A2aChannelClosed)]


@pytest.fixture
async def world() -> World:
    return World()


@pytest.mark.spec("C-136", "E-205")
async def test_an_ask_that_nobody_answers_is_closed_after_an_hour_and_gone_a_week_later(world: World) -> None:
    await world.opened()
    await asyncio.sleep(HOUR_S - 1)
    await world.tick()
    early = await world.channels.get("c1")

    await asyncio.sleep(1)
    await world.tick()
    closed = await world.channels.get("c1")
    await asyncio.sleep(7 * DAY_S)
    await world.tick()
    kept = await world.channels.get("c1")
    await asyncio.sleep(1)
    await world.tick()

    assert early is not None
    assert early.status is ChannelStatus.OPEN
    assert closed is not None
    assert (closed.status, closed.closed_by, closed.closed_turn_id) == (ChannelStatus.CLOSED, "", "")
    assert kept == closed
    assert await world.channels.get("c1") is None


@pytest.mark.spec("C-136")
async def test_no_time_alone_closes_an_ask_or_takes_its_record(world: World) -> None:
    asked = await world.opened()

    await asyncio.sleep(20 * DAY_S)

    assert await world.channels.get("c1") == asked


@pytest.mark.spec("E-207", "E-208")
async def test_a_close_by_the_sweep_is_told_with_its_participants_and_no_seat_or_turn_behind_it(world: World) -> None:
    await world.opened()
    await asyncio.sleep(2 * HOUR_S)

    await world.tick()
    await world.tick()

    [(topic, event)] = world.published
    assert topic == topics.event_topic("a2a_channel_closed")
    assert event.trace_id == "a" * 32
    assert world.closes() == [
        A2aChannelClosed(
            channel_id="c1", participants=("ceo", "cto"), message_count=1, duration_ms=int(2 * HOUR_S * 1000)
        )
    ]


async def test_an_ask_that_something_happened_on_is_left_open(world: World) -> None:
    await world.opened()
    await asyncio.sleep(2 * HOUR_S)
    idle = world.channels.idle

    async def answered_meanwhile(**since: object) -> object:
        found = await idle(**since)  # pyright: ignore[reportArgumentType]
        await world.channels.answer("c1", at=world.clock.now(), answer_event_id="e2")
        return found

    world.channels.idle = answered_meanwhile  # type: ignore[method-assign]
    await world.tick()

    channel = await world.channels.get("c1")
    assert channel is not None
    assert channel.status is ChannelStatus.ANSWERED
    assert world.published == []


async def test_a_close_that_could_not_be_told_is_told_by_the_next_tick(world: World) -> None:
    await world.opened()
    await asyncio.sleep(2 * HOUR_S)
    world.broker_is_away = True
    with pytest.raises(Unavailable):
        await world.tick()

    world.broker_is_away = False
    await world.tick()
    await world.tick()

    assert len(world.closes()) == 1


async def test_an_answered_ask_whose_asker_was_not_woken_is_woken_by_the_turn_that_comes_back(world: World) -> None:
    """The answering turn died between the record and the wake, for longer than an idle ask is kept open."""
    await world.opened()
    await world.channels.answer("c1", at=world.clock.now(), answer_event_id=answer_wake_id("c1"))
    await asyncio.sleep(2 * HOUR_S)
    await world.tick()
    answer = Answer(
        responder="cto", content="SQLite", failed=False, turn_id="t2", work_key="w2", trace=Trace("a" * 32, "b" * 16)
    )

    assert await world.asks.answer("c1", answer) is AnswerFate.SENT

    assert answer_wake_id("c1") in {event.id for _, event in world.published}


async def test_a_closed_ask_that_changed_since_it_was_read_is_kept_for_another_tick(world: World) -> None:
    await world.opened()
    await world.channels.close("c1", at=world.clock.now())
    await asyncio.sleep(8 * DAY_S)
    closed = world.channels.closed

    async def changed_meanwhile(**before: object) -> object:
        found = await closed(**before)  # pyright: ignore[reportArgumentType]
        return [
            type(each)(each.key, replace(each.record), type(each.revision)(each.revision + 1), each.written_at)
            for each in found
        ]

    world.channels.closed = changed_meanwhile  # type: ignore[method-assign]
    await world.tick()

    record = await world.channels.get("c1")
    assert record is not None
    assert record.closed_at is not None
    assert world.clock.now() - record.closed_at > timedelta(days=7)
