"""An inbox over a real turn engine: what is said of a turn that broke after it had acted."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.fence import Fence, OpenFence, ServingPosture
from crewlet.coordination import LEDGER, Ledger
from crewlet.events import Event
from crewlet.events.types import AgentTurnCompleted, TurnTriggerSkipped
from crewlet.inbox import SeatInbox, SeatInboxParts, Trigger, TurnGate, TurnJournal, TurnOutcome
from crewlet.queue import Ack
from crewlet.testing import SeededIds, VirtualClock
from tests.unit.inbox.inbox_kit import batch_of
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, call, failure, operator_says, says

pytestmark = pytest.mark.virtual_time


class Held:
    """A seat that is always held here."""

    def may_start(self, handle: str) -> int | None:
        return 1

    def fence(self, handle: str, epoch: int) -> Fence:
        return OpenFence()


def inbox_over(stage: Stage) -> SeatInbox:
    async def run_turn(trigger: Trigger, fence: Fence, _: TurnJournal) -> TurnOutcome:
        return await stage.run(trigger, fence)

    async def settle(trigger: Trigger, outcome: TurnOutcome) -> None:
        pass

    async def publish(topic: str, event: Event) -> Event:
        stage.published.append(event)
        return event

    clock = VirtualClock()
    return SeatInbox(
        "ceo",
        SeatInboxParts(
            admission=Held(),
            posture=ServingPosture(),
            ledger=Ledger(MemoryRecordStore(MemoryBucket(LEDGER, clock)), clock),
            gate=TurnGate(1),
            run_turn=run_turn,
            settle=settle,
            publish=publish,
            clock=clock,
            ids=SeededIds(9),
        ),
    )


@pytest.mark.spec("S-124", "S-127")
async def test_a_turn_that_broke_after_it_had_commented_comments_once_and_says_that_it_is_lost() -> None:
    comment = PlayedTool("comment", server="board")
    acts = says("", call("activate_tool", name="comment"), call("comment", text="hi"))
    stage = Stage(executor=PlayedModel(acts, failure()), tools=[comment])
    inbox = inbox_over(stage)
    batch = batch_of(operator_says())

    with capture_logs():
        outcomes = [await inbox.handle(batch), await inbox.handle(batch)]

    completed = stage.only(AgentTurnCompleted)
    given_up, again = stage.all_of(TurnTriggerSkipped)
    assert outcomes == [Ack(), Ack()]
    assert len(comment.calls) == 1
    assert (completed.failed, completed.redelivered) == (True, False)
    assert (given_up.turn_id, given_up.abandoned) == (completed.turn_id, True)
    assert "reached outside" in given_up.reason
    assert again.reason == "worked already"
