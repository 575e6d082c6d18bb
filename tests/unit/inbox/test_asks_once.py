"""Both hops of an ask are work like any other: what was worked once runs no second turn, on whichever node."""

from __future__ import annotations

import pytest

from crewlet.backends.memory.records import MemoryBucket
from crewlet.coordination import LEDGER
from crewlet.events import Body
from crewlet.events.types import A2aMessage, A2aRequest
from crewlet.inbox import partition_of
from crewlet.queue import Ack
from crewlet.testing import VirtualClock
from tests.unit.inbox.inbox_kit import Node, event

pytestmark = pytest.mark.virtual_time

QUESTION = A2aRequest(channel_id="c1", requester="cto", target="ceo", brief="Which database?")
ANSWER = A2aMessage(channel_id="c2", requester="ceo", responder="cto", brief="How long?", content="Two weeks.")


@pytest.mark.spec("E-203")
@pytest.mark.parametrize("hop", [QUESTION, ANSWER])
async def test_a_hop_that_is_delivered_again_runs_no_second_turn(hop: Body) -> None:
    bucket = MemoryBucket(LEDGER, VirtualClock())
    first, successor = Node(bucket), Node(bucket)

    assert await first.gets(event(hop)) == Ack()
    assert await successor.gets(event(hop)) == Ack()

    assert [trigger.lead.id for trigger in first.triggers] == ["e1"]
    assert successor.triggers == []
    assert [skip.reason for skip in successor.skips] == ["worked already"]


@pytest.mark.parametrize("hop", [QUESTION, ANSWER])
async def test_a_hop_is_merged_with_nothing(hop: Body) -> None:
    assert partition_of(event(hop, "e1")) != partition_of(event(hop, "e2"))
