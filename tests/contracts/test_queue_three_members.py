"""The event queue on three members keeps every promise of its contract, whoever leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.queue_on_jetstream import ClusterHarness
from tests.contracts.capabilities import skip_where_absent

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def queue(three_members: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[contracts.QueueHarness]:
    skip_where_absent(ClusterHarness.absent, request)
    async with ClusterHarness(three_members) as harness:
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
