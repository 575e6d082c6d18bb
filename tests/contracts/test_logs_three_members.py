"""The log on three members keeps every promise of its contract, whoever leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.log_harness import LogHarness
from crewlet.testing.contracts.log_on_jetstream import ClusterLogs
from crewlet.testing.contracts.logs import LOG_SUITE
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def logs(three_members: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[LogHarness]:
    skip_where_absent(ClusterLogs.absent, request)
    async with ClusterLogs(three_members) as harness:
        yield harness


globals().update(bound(LOG_SUITE, module=__name__))
