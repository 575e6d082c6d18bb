"""One seat's inbox: what is worked, what is handed back, what is said of it, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.backends.memory.records import MemoryBucket
from crewlet.base import limits
from crewlet.base.errors import Fenced, StoppedByPerson, Unavailable
from crewlet.base.ids import TurnId
from crewlet.coordination import LEDGER
from crewlet.events.types import A2aRequest, AgentSpawned
from crewlet.inbox import (
    Decision,
    TurnOutcome,
    UnreadableTrigger,
    partition_of,
)
from crewlet.queue import Ack, Defer, Nak, Subscription
from crewlet.testing import VirtualClock, wait_until
from tests.unit.inbox.inbox_kit import BROKE, BROKE_OUTSIDE, DONE, Node, event

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def node() -> Node:
    return Node(MemoryBucket(LEDGER, VirtualClock()))


async def recorded(node: Node, event_id: str = "e1") -> str | None:
    completion = await node.ledger.completion("ceo", event_id)
    return None if completion is None else completion.outcome


async def test_a_finished_turn_is_settled_then_recorded_then_acknowledged(node: Node) -> None:
    outcome = await node.gets()

    assert outcome == Ack()
    assert node.steps == ["run", "settle done", "record"]
    assert await recorded(node) == "done"
    assert node.published == []


async def test_a_turn_runs_under_the_fence_of_the_seats_epoch_and_knows_its_headroom(node: Node) -> None:
    await node.gets(headroom=3)

    assert [fence.epoch for fence in node.fences] == [7]
    assert [(trigger.lead.id, trigger.headroom) for trigger in node.triggers] == [("e1", 3)]


@pytest.mark.spec("C-065", "S-111", "S-210")
async def test_what_one_node_finished_another_does_not_begin(node: Node) -> None:
    """The first died before its acknowledgement, so its delivery came to the second."""
    peer = Node(node.bucket)
    await node.gets()

    outcome = await peer.gets()

    assert outcome == Ack()
    assert peer.steps == []


@pytest.mark.spec("S-122")
async def test_what_was_worked_already_is_skipped_aloud(node: Node) -> None:
    await node.gets()
    await node.gets()

    assert [(skip.trigger_id, skip.reason, skip.abandoned) for skip in node.skips] == [("e1", "worked already", False)]
    assert [topic for topic, _ in node.published] == ["crewlet.events.turn_trigger_skipped"]
    assert node.published[0][1].trace_id == "a" * 32


async def test_a_skip_that_cannot_be_told_is_acknowledged_all_the_same(node: Node) -> None:
    """It is worked; to spend its deliveries on the news of that would make a dead letter of it."""
    await node.gets()
    node.publishing = Unavailable("the broker is away")

    with capture_logs() as logs:
        outcome = await node.gets()

    assert outcome == Ack()
    assert "turn_trigger_skipped_lost" in [entry["event"] for entry in logs]


@pytest.mark.spec("E-062")
async def test_a_failed_turn_lets_newer_mail_of_its_conversation_go_first(node: Node) -> None:
    inbox = Subscription("crewlet.agent.ceo.inbox", "agent-ceo")
    queue = MemoryQueue(MemoryBroker(VirtualClock()), node="one")

    async def breaks_at_first() -> TurnOutcome:
        if len(node.triggers) > 1:
            return DONE
        await queue.publish(inbox.topic, event(event_id="newer"))
        return BROKE

    node.does = breaks_at_first
    await queue.subscribe_batch(inbox, node.inbox.handle, partition=partition_of)
    await queue.publish(inbox.topic, event(event_id="older"))
    await wait_until(lambda: len(node.triggers) == 3, what="three turns")
    await queue.close()

    assert [trigger.lead.id for trigger in node.triggers] == ["older", "newer", "older"]


async def test_another_events_completion_does_not_count(node: Node) -> None:
    await node.gets()
    await node.gets(event(event_id="e2"))

    assert node.steps.count("run") == 2


@pytest.mark.spec("S-120")
async def test_an_event_that_runs_no_turn_is_dropped_and_logged_and_not_recorded(node: Node) -> None:
    with capture_logs() as logs:
        outcome = await node.gets(event(AgentSpawned(agent_handle="ceo")))

    assert outcome == Ack()
    assert node.steps == []
    assert await recorded(node) is None
    assert [(entry["event"], entry["type"]) for entry in logs] == [("inbox_event_dropped", "agent_spawned")]


async def test_an_event_that_runs_no_turn_is_dropped_where_the_seat_is_not_held_too(node: Node) -> None:
    node.epoch = None

    assert await node.gets(event(AgentSpawned(agent_handle="ceo"))) == Ack()


async def test_a_delivery_to_a_seat_that_is_not_held_is_deferred(node: Node) -> None:
    node.epoch = None

    outcome = await node.gets()

    assert isinstance(outcome, Defer)
    assert "not owned here" in outcome.reason
    assert (node.steps, node.published) == ([], [])


async def test_a_delivery_to_a_node_that_serves_nothing_is_deferred(node: Node) -> None:
    node.serves = False

    outcome = await node.gets()

    assert isinstance(outcome, Defer)
    assert "configuration" in outcome.reason
    assert node.steps == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epoch": None}, "not owned here"),
        ({"epoch": 8}, "held elsewhere"),
        ({"serves": False}, "configuration"),
    ],
)
async def test_work_whose_grant_ended_while_it_waited_for_a_slot_is_deferred(
    node: Node, change: dict[str, int | bool | None], says: str
) -> None:
    """A seat that is back under another epoch was a peer's meanwhile, who was given this delivery."""
    await node.gate.enter()
    waiting = asyncio.create_task(node.gets())
    await asyncio.sleep(60)
    for name, value in change.items():
        setattr(node, name, value)
    node.gate.leave()

    outcome = await waiting

    assert isinstance(outcome, Defer)
    assert says in outcome.reason
    assert node.steps == []


async def test_no_more_turns_run_than_the_node_has_slots(node: Node) -> None:
    running = asyncio.Event()
    finish = asyncio.Event()

    async def until_told() -> TurnOutcome:
        running.set()
        await finish.wait()
        return DONE

    node.does = until_told
    first, second = asyncio.create_task(node.gets()), asyncio.create_task(node.gets(event(event_id="e2")))
    await running.wait()
    await asyncio.sleep(60)
    while_one_runs = node.steps.count("run")
    finish.set()

    assert while_one_runs == 1
    assert [await first, await second] == [Ack(), Ack()]
    assert node.steps.count("run") == 2


async def test_a_slot_is_free_again_after_a_turn_that_raised(node: Node) -> None:
    node.does = Unavailable("the seat has left the company")
    with pytest.raises(Unavailable):
        await node.gets()

    node.does = DONE

    assert await node.gets() == Ack()


async def test_a_turn_that_the_fence_stopped_is_deferred_and_nothing_is_recorded(node: Node) -> None:
    node.does = Fenced("the seat moved")

    outcome = await node.gets()

    assert outcome == Defer("the seat moved")
    assert node.steps == ["run"]
    assert (await recorded(node), node.published) == (None, [])


@pytest.mark.spec("S-081")
@pytest.mark.parametrize(
    "end",
    [
        StoppedByPerson("ann stopped it"),
        TurnOutcome(turn_id=TurnId("t1"), decision=Decision.STOPPED, finished=True),
    ],
)
async def test_a_turn_that_a_person_stopped_is_recorded_and_acknowledged(
    node: Node, end: Exception | TurnOutcome
) -> None:
    """It does not come back, and whoever asked for it is told."""
    node.does = end

    outcome = await node.gets()

    assert outcome == Ack()
    assert node.steps == ["run", "settle stopped", "record"]
    assert await recorded(node) == "stopped"


@pytest.mark.spec("S-123")
async def test_a_broken_turn_that_reached_nobody_is_given_back_unsettled_and_unrecorded(node: Node) -> None:
    node.does = BROKE

    outcome = await node.gets()

    assert outcome == Nak("llm_unavailable")
    assert node.steps == ["run"]
    assert (await recorded(node), node.published) == (None, [])


@pytest.mark.spec("S-124")
async def test_a_broken_turn_that_reached_outside_is_never_run_again(node: Node) -> None:
    node.does = BROKE_OUTSIDE

    first, again = await node.gets(), await node.gets()

    assert (first, again) == (Ack(), Ack())
    assert node.steps == ["run", "settle failed", "record"]
    assert await recorded(node) == "failed"


async def test_giving_up_is_said_with_the_turn_and_the_reason(node: Node) -> None:
    node.does = BROKE_OUTSIDE

    await node.gets()

    assert [(skip.turn_id, skip.abandoned, skip.detail) for skip in node.skips] == [("t1", True, "no model answered")]
    assert "reached outside" in node.skips[0].reason


async def test_giving_up_that_cannot_be_told_is_recorded_all_the_same(node: Node) -> None:
    """Run again for the sake of that news, it would repeat its calls."""
    node.does = BROKE_OUTSIDE
    node.publishing = Unavailable("the broker is away")

    outcome = await node.gets()

    assert outcome == Ack()
    assert await recorded(node) == "failed"


async def test_the_last_delivery_of_a_broken_turn_is_given_up_aloud_and_left_to_the_dead_letters(node: Node) -> None:
    """Whoever asked is answered; the ledger must not say that it was worked."""
    node.does = BROKE

    outcome = await node.gets(headroom=0)

    assert outcome == Nak("llm_unavailable")
    assert node.steps == ["run", "settle failed"]
    assert [skip.abandoned for skip in node.skips] == [True]
    assert await recorded(node) is None


@pytest.mark.spec("S-118")
async def test_a_ledger_that_cannot_be_read_lets_the_turn_run(node: Node) -> None:
    await node.gets()
    node.bucket.cut = True

    outcome = await node.gets()

    assert outcome == Ack()
    assert node.steps.count("run") == 2


@pytest.mark.spec("S-118")
async def test_a_ledger_that_cannot_be_written_is_acknowledged_all_the_same(node: Node) -> None:
    async def cut_off() -> TurnOutcome:
        node.bucket.cut = True
        return DONE

    node.does = cut_off

    with capture_logs() as logs:
        outcome = await node.gets()

    assert outcome == Ack()
    assert "ledger_write_failed" in [entry["event"] for entry in logs]


async def test_an_answer_that_could_not_be_handed_over_gives_the_work_back_unrecorded(node: Node) -> None:
    node.settling = Unavailable("the broker is away")
    with pytest.raises(Unavailable):
        await node.gets()
    before = await recorded(node)

    node.settling = None
    outcome = await node.gets()

    assert (before, outcome) == (None, Ack())
    tried = ["settle done"] * limits.ANSWER_ATTEMPTS_MAX
    assert node.steps == ["run", *tried, "run", "settle done", "record"]


async def test_an_outage_while_the_answer_is_handed_over_runs_no_turn_again(node: Node) -> None:
    """A restart of the broker takes a second; a turn takes minutes and money."""
    node.settling = Unavailable("the link dropped")
    handled = asyncio.create_task(node.gets())
    await asyncio.sleep(3)
    node.settling = None

    outcome = await handled

    assert outcome == Ack()
    assert node.steps.count("run") == 1
    assert await recorded(node) == "done"


@pytest.mark.spec("S-125", "S-127")
async def test_a_defect_of_ours_is_recorded_and_given_up_aloud_with_its_stack(node: Node) -> None:
    """Handed back, it would be met again, after whatever the turn had done before it."""
    node.does = RuntimeError("a bug")

    with capture_logs() as logs:
        outcome = await node.gets()

    assert outcome == Ack()
    assert await recorded(node) == "failed"
    assert [(skip.reason, skip.detail) for skip in node.skips] == [("the engine failed in it", "RuntimeError: a bug")]
    panicked = next(line for line in logs if line["event"] == "dispatch_panicked")
    assert panicked["exc_info"] is True


async def test_a_cancelled_turn_travels_on_and_frees_its_slot(node: Node) -> None:
    async def for_ever() -> TurnOutcome:
        await asyncio.Event().wait()
        return DONE

    node.does = for_ever
    running = asyncio.create_task(node.gets())
    await asyncio.sleep(1)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running

    node.does = DONE
    assert await node.gets(event(event_id="e2")) == Ack()
    assert await recorded(node) is None


async def test_an_ask_is_a_trigger_that_its_channel_is_answered_for(node: Node) -> None:
    await node.gets(event(A2aRequest(channel_id="c1", requester="cto", target="ceo", brief="How much?")))

    assert [trigger.answers_channel for trigger in node.triggers] == ["c1"]


async def test_work_that_cannot_be_read_comes_back_and_is_never_acknowledged(node: Node) -> None:
    with pytest.raises(UnreadableTrigger):
        await node.gets(replace(event(), data=None))

    assert node.steps == []
    assert await recorded(node) is None


def _last_deliveries() -> list[tuple[str, Callable[[Node], None], str]]:
    def gone(node: Node) -> None:
        node.does = Unavailable("the seat has left the company")

    def unsettled(node: Node) -> None:
        node.settling = Unavailable("the broker is away")

    def fenced(node: Node) -> None:
        node.does = Fenced("epoch 7 is over")

    def not_held(node: Node) -> None:
        node.epoch = None

    return [
        ("no seat", gone, "has left"),
        ("no settlement", unsettled, "the broker is away"),
        ("the fence", fenced, "epoch 7 is over"),
        ("no grant", not_held, "not owned here"),
    ]


@pytest.mark.parametrize(("what", "arrange", "why"), _last_deliveries(), ids=[each[0] for each in _last_deliveries()])
async def test_whatever_spends_the_last_delivery_whoever_waits_for_it_hears_so(
    node: Node, what: str, arrange: Callable[[Node], None], why: str
) -> None:
    """The queue makes a dead letter of it: an operator would wait for an answer for ever, a colleague for its ask."""
    arrange(node)
    ask = event(A2aRequest(channel_id="c1", requester="cto", target="ceo", brief="Which database?"))

    with suppress(Unavailable):
        await node.gets(ask, headroom=0)

    assert [(skip.trigger_id, skip.abandoned) for skip in node.skips] == [("e1", True)], what
    assert why in node.skips[0].detail
    assert node.steps[-1] == "settle failed"
    assert await recorded(node) is None


async def test_the_last_delivery_of_work_that_cannot_be_read_is_given_up_aloud(node: Node) -> None:
    with pytest.raises(UnreadableTrigger):
        await node.gets(replace(event(), data=None), headroom=0)

    assert [(skip.trigger_id, skip.abandoned) for skip in node.skips] == [("e1", True)]
