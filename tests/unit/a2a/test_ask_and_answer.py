"""One agent asks another: one question, one answer, closed, and every step repeatable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec
import pytest

from crewlet import topics
from crewlet.a2a import A2aService, Answer, AnswerFate, AskTool, answer_wake_id, request_wake_id
from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.base.fence import OpenFence
from crewlet.base.trace import Trace
from crewlet.coordination import CHANNELS, Channels, ChannelStatus
from crewlet.events import Event
from crewlet.events.types import A2aChannelClosed, A2aMessage, A2aRequest
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tools import CallContext, reaches_outside

pytestmark = pytest.mark.virtual_time

_TRACE = Trace("a" * 32, "b" * 16)
_CONTEXT = CallContext(
    handle="ceo",
    turn_id="t1",
    work_key="w1",
    fence=OpenFence(),
    trace=_TRACE,
    delegation_depth=1,
    delegation_chain=("boss",),
    task="What should we build first?",
    answers_channel="outer",
    reply="engine",
)


class _AheadClock(VirtualClock):
    """A node's clock that is set wrong."""

    def __init__(self, ahead_s: int) -> None:
        super().__init__()
        self._ahead = timedelta(seconds=ahead_s)

    def now(self) -> datetime:
        return super().now() + self._ahead


@dataclass
class _World:
    """A company of agents and a person, its channels, and everything that was published."""

    bucket: MemoryBucket
    published: list[tuple[str, Event]] = field(default_factory=list[tuple[str, Event]])
    fail_on: str = ""
    ahead_s: int = 0

    def __post_init__(self) -> None:
        clock = _AheadClock(self.ahead_s)
        self.channels = Channels(MemoryRecordStore(self.bucket))
        self.service = A2aService(channels=self.channels, publish=self.publish, clock=clock, ids=SeededIds(3))
        self.tool = AskTool(self.service, self)

    def agents(self) -> tuple[str, ...]:
        return ("ceo", "cto")

    def is_human(self, handle: str) -> bool:
        return handle == "ann"

    async def publish(self, topic: str, event: Event) -> Event:
        if event.type == self.fail_on:
            raise Unavailable("the broker is away")
        self.published.append((topic, event))
        return event

    def ids(self) -> Iterable[str]:
        return {event.id for _, event in self.published}

    def wake(self, kind: type[A2aRequest | A2aMessage]) -> Event:
        return next(event for _, event in self.published if isinstance(event.data, kind))


@pytest.fixture
async def world() -> _World:
    return _World(MemoryBucket(CHANNELS, VirtualClock()))


def _answer(content: str = "SQLite") -> Answer:
    return Answer(responder="cto", content=content, failed=False, turn_id="t2", work_key="w2", trace=_TRACE)


@pytest.mark.spec("E-200", "E-201", "E-203")
async def test_an_ask_is_recorded_and_wakes_the_colleague_with_the_question(world: _World) -> None:
    """The brief travels on the wake in the target's inbox, one level deeper in the chain of delegation."""
    result = await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)

    assert (result.ends_turn, result.is_error) == (True, False)
    channel = await world.channels.get(result.ask)
    assert channel is not None
    assert (channel.status, channel.participants) == (ChannelStatus.OPEN, ("ceo", "cto"))
    topic, wake = next((t, e) for t, e in world.published if isinstance(e.data, A2aRequest))
    assert topic == topics.agent_inbox("cto")
    assert wake.id == request_wake_id(result.ask)
    assert (wake.delegation_depth, wake.delegation_chain) == (2, ("boss", "ceo"))
    assert wake.trace_id == _TRACE.trace_id


async def test_the_same_ask_again_is_the_same_channel_and_the_same_events(world: _World) -> None:
    """A turn that runs again from its start opens nothing new, under whatever turn id it runs."""
    first = await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)
    before = world.ids()
    again = await world.tool.call({"handle": "cto", "brief": "Which database?"}, replace(_CONTEXT, turn_id="t9"))

    assert again.ask == first.ask
    assert world.ids() == before


async def test_an_ask_that_was_answered_before_it_was_told_of_is_told_of_by_its_repeat(world: _World) -> None:
    """The asking run died once its wake was out; the colleague was faster than the run that replaced it."""
    world.fail_on = "a2a_channel_opened"
    with pytest.raises(Unavailable):
        await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)
    world.fail_on = ""
    wake = world.wake(A2aRequest).data
    assert isinstance(wake, A2aRequest)
    await world.service.answer(wake.channel_id, _answer())
    wakes = sum(1 for _, event in world.published if isinstance(event.data, A2aRequest))

    again = await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)

    assert again.ask == wake.channel_id
    assert "a2a_channel_opened" in {event.type for _, event in world.published}
    assert sum(1 for _, event in world.published if isinstance(event.data, A2aRequest)) == wakes


async def test_another_question_of_the_same_work_is_another_channel(world: _World) -> None:
    """Only a repeat is the same ask."""
    first = await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)
    other = await world.tool.call({"handle": "cto", "brief": "Which language?"}, _CONTEXT)

    assert other.ask != first.ask


@pytest.mark.spec("E-201", "E-203", "E-208")
async def test_an_answer_wakes_the_asker_with_its_task_and_closes_the_channel(world: _World) -> None:
    """The woken turn knows what the asking one was to do, and the close names the turn that answered."""
    ask = (await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask

    assert await world.service.answer(ask, _answer()) is AnswerFate.SENT

    topic, wake = next((t, e) for t, e in world.published if isinstance(e.data, A2aMessage))
    assert topic == topics.agent_inbox("ceo")
    assert isinstance(wake.data, A2aMessage)
    assert (wake.data.content, wake.data.task) == ("SQLite", "What should we build first?")
    assert (wake.data.answers_channel, wake.data.reply) == ("outer", "engine")
    assert (wake.id, wake.delegation_depth, wake.delegation_chain) == (answer_wake_id(ask), 1, ("boss",))
    closed = next(event.data for _, event in world.published if isinstance(event.data, A2aChannelClosed))
    assert (closed.closed_by, closed.turn_id, closed.work_key) == ("cto", "t2", "w2")
    assert (closed.participants, closed.message_count) == (("ceo", "cto"), 2)
    answer = next(event for _, event in world.published if event.type == "a2a_message_sent" and event.source == "cto")
    assert answer.actor == "cto"
    channel = await world.channels.get(ask)
    assert channel is not None
    assert channel.status is ChannelStatus.CLOSED


async def test_an_answer_that_broke_off_is_finished_by_its_repeat(world: _World) -> None:
    """The channel was marked as answered, but the wake did not go out: the repeat sends it and closes."""
    ask = (await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask
    world.fail_on = "a2a_message"
    with pytest.raises(Unavailable):
        await world.service.answer(ask, _answer())
    world.fail_on = ""

    assert await world.service.answer(ask, _answer()) is AnswerFate.SENT

    assert world.wake(A2aMessage).id == answer_wake_id(ask)


@pytest.mark.spec("E-206")
async def test_an_unknown_channel_refuses_an_answer(world: _World) -> None:
    """Nothing is published for an ask that nobody recorded."""
    assert await world.service.answer("no-such-channel", _answer()) is AnswerFate.UNKNOWN

    assert world.published == []


@pytest.mark.spec("E-206")
async def test_an_answer_that_comes_after_the_close_bounces_as_late_and_not_as_unknown(world: _World) -> None:
    """The closed record is what tells the two apart."""
    ask = (await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask
    await world.channels.close(ask, at=await world.channels.now())
    before = len(world.published)

    assert await world.service.answer(ask, _answer()) is AnswerFate.CLOSED

    assert len(world.published) == before


@pytest.mark.spec("E-207")
@pytest.mark.parametrize("ahead_s", [-3600, 0, 3600])
async def test_how_long_an_ask_was_open_is_right_where_the_clocks_of_its_ends_differ(ahead_s: int) -> None:
    """It is opened on one node and closed on another; both write the record in the store's time."""
    asking = _World(MemoryBucket(CHANNELS, VirtualClock()), ahead_s=ahead_s)
    answering = _World(asking.bucket)
    ask = (await asking.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask
    await asyncio.sleep(90)

    await answering.service.answer(ask, _answer())

    closed = next(event.data for _, event in answering.published if isinstance(event.data, A2aChannelClosed))
    assert closed.duration_ms == pytest.approx(90_000, abs=1)
    assert (closed.participants, closed.message_count) == (("ceo", "cto"), 2)


@pytest.mark.spec("E-204")
async def test_an_asks_record_says_who_takes_part_whether_it_is_open_and_how_many_messages_there_were(
    world: _World,
) -> None:
    """It is one record of the slot that every node reads."""
    ask = (await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask
    [asked] = await MemoryRecordStore(world.bucket).list("channel.>")
    await world.service.answer(ask, _answer())
    [answered] = await MemoryRecordStore(world.bucket).list("channel.>")

    said = [msgspec.json.decode(record.value) for record in (asked, answered)]

    assert [(each["participants"], each["message_count"]) for each in said] == [
        (["ceo", "cto"], 1),
        (["ceo", "cto"], 2),
    ]
    assert [each["status"] for each in said] == ["open", "closed"]


async def test_a_turn_that_comes_back_to_an_ask_that_was_closed_unanswered_does_not_wait_for_it(world: _World) -> None:
    """It was away for longer than an ask is kept open: nobody would ever wake it."""
    ask = (await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask
    await world.channels.close(ask, at=await world.channels.now())

    again = await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)

    assert (again.ends_turn, again.is_error) == (False, True)
    assert "has not answered" in again.text


async def test_a_repeated_answer_to_a_closed_channel_sends_nothing_again(world: _World) -> None:
    """Closed means that the wake went out."""
    ask = (await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask
    await world.service.answer(ask, _answer())
    before = len(world.published)

    assert await world.service.answer(ask, _answer("MySQL")) is AnswerFate.SENT

    assert len(world.published) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"handle": "ceo", "brief": "Hm?"}, "that is you"),
        ({"handle": "ann", "brief": "Hm?"}, "a person"),
        ({"handle": "cfo", "brief": "Hm?"}, "you can ask: cto"),
        ({"handle": "cto", "brief": " "}, "brief"),
    ],
)
async def test_an_ask_that_cannot_be_made_tells_the_model_why(
    world: _World, arguments: dict[str, object], says: str
) -> None:
    """It is an error result, not the end of the turn, and nothing was recorded."""
    result = await world.tool.call(arguments, _CONTEXT)

    assert result.is_error
    assert not result.ends_turn
    assert says in result.text
    assert world.published == []


@pytest.mark.spec("S-126")
async def test_an_ask_counts_as_reaching_outside(world: _World) -> None:
    """It is first-party, but it wakes a colleague; its own annotations say so."""
    assert reaches_outside(world.tool.row)


async def test_an_ask_is_told_of_only_once_its_wake_is_out(world: _World) -> None:
    """A run that dies in between may be replaced by one that asks something else: nobody waits for this one then."""
    world.fail_on = A2aRequest.event_type

    with pytest.raises(Unavailable):
        await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)

    assert world.published == []


async def test_an_answer_that_no_message_could_carry_is_cut_and_says_so(world: _World) -> None:
    """Refused by the broker, it would bring its turn back until its deliveries are spent, and the asker would wait."""
    ask = (await world.tool.call({"handle": "cto", "brief": "Which database?"}, _CONTEXT)).ask

    await world.service.answer(ask, _answer("x" * 40_000_000))

    wake = world.wake(A2aMessage).data
    assert isinstance(wake, A2aMessage)
    assert len(wake.content) < 1_000_100
    assert wake.content.endswith("(cut: the whole answer has 40000000 characters)")
