"""A trigger that is given up: a row in the log that says why, whatever the reason."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket
from crewlet.base.ids import TurnId
from crewlet.coordination import LEDGER
from crewlet.events import Category, category_of
from crewlet.events.types import TurnTriggerSkipped
from crewlet.inbox import Decision, TurnOutcome
from crewlet.queue import Ack
from crewlet.testing import VirtualClock
from tests.unit.inbox.inbox_kit import BROKE_OUTSIDE, Node

pytestmark = pytest.mark.virtual_time

DECLINED = TurnOutcome(
    turn_id=TurnId("t1"), decision=Decision.FAILED, finished=True, error="I will not", error_kind="refusal"
)


@pytest.mark.spec("E-124")
@pytest.mark.parametrize(
    ("end", "reason", "detail"),
    [
        (RuntimeError("a bug"), "the engine failed in it", "RuntimeError: a bug"),
        (BROKE_OUTSIDE, "the turn broke after a call had reached outside", "no model answered"),
        (DECLINED, "the model declined", "I will not"),
    ],
    ids=["panicked", "wrote outside", "declined"],
)
async def test_a_trigger_that_is_given_up_is_told_as_a_notification_with_the_reason(
    end: TurnOutcome | Exception, reason: str, detail: str
) -> None:
    node = Node(MemoryBucket(LEDGER, VirtualClock()), does=end)

    with capture_logs():
        outcome = await node.gets()

    ((_, said),) = node.published
    assert outcome == Ack()
    assert category_of(said.type) is Category.NOTIFICATION
    assert isinstance(said.data, TurnTriggerSkipped)
    assert (said.data.reason, said.data.detail, said.data.abandoned) == (reason, detail, True)
