"""The event queue on three members keeps every promise of its contract, whoever leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.queue_on_jetstream import ClusterHarness
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def queue(three_members: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[contracts.QueueHarness]:
    skip_where_absent(ClusterHarness.absent, request)
    async with ClusterHarness(three_members) as harness:
        yield harness


globals().update(bound(contracts.QUEUE_SUITE, module=__name__))
