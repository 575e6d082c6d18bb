"""The event queue's twin keeps every promise of the contract, but the capabilities that it declares absent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.contracts.queue_on_memory import MemoryHarness
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def queue(request: pytest.FixtureRequest) -> AsyncIterator[contracts.QueueHarness]:
    skip_where_absent(MemoryHarness.absent, request)
    async with MemoryHarness() as harness:
        yield harness


globals().update(bound(contracts.QUEUE_SUITE, module=__name__))
