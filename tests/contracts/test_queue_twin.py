"""The event queue's twin keeps every promise of the contract, but the capabilities that it declares absent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.contracts.queue_on_memory import MemoryHarness
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def queue(request: pytest.FixtureRequest) -> AsyncIterator[contracts.QueueHarness]:
    skip_where_absent(MemoryHarness.absent, request)
    async with MemoryHarness() as harness:
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
