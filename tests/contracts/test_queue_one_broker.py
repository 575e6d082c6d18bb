"""The event queue on one broker keeps every promise of its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.queue_on_jetstream import JetStreamHarness
from tests.contracts.capabilities import skip_where_absent

pytestmark = [pytest.mark.slow, pytest.mark.spec("E-008")]


@pytest.fixture
async def queue(one_broker: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[contracts.QueueHarness]:
    skip_where_absent(JetStreamHarness.absent, request)
    async with JetStreamHarness(one_broker) as harness:
        yield harness


class TestPublishing(contracts.Publishing): ...


class TestServingOrder(contracts.ServingOrder): ...


class TestOutcomes(contracts.Outcomes): ...


class TestDeadLetters(contracts.DeadLetters): ...


class TestHeadroom(contracts.Headroom): ...


class TestMailboxes(contracts.Mailboxes): ...


class TestMailboxListing(contracts.MailboxListing): ...


class TestMailboxStates(contracts.MailboxStates): ...


class TestLettingGo(contracts.LettingGo): ...


class TestHolds(contracts.Holds): ...


class TestTakeOver(contracts.TakeOver): ...


class TestBatchCollection(contracts.BatchCollection): ...


class TestBatchSettlement(contracts.BatchSettlement): ...


class TestBatchStops(contracts.BatchStops): ...


class TestListeners(contracts.Listeners): ...


class TestBroadcast(contracts.Broadcast): ...


class TestQuestions(contracts.Questions): ...
