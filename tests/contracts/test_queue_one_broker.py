"""The event queue on one broker keeps every promise of its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.queue_on_jetstream import JetStreamHarness
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = [pytest.mark.slow, pytest.mark.spec("E-008")]


@pytest.fixture
async def queue(one_broker: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[contracts.QueueHarness]:
    skip_where_absent(JetStreamHarness.absent, request)
    async with JetStreamHarness(one_broker) as harness:
        yield harness


globals().update(bound(contracts.QUEUE_SUITE, module=__name__))
