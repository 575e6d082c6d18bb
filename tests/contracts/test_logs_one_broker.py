"""The log on one broker keeps every promise of its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.log_harness import LogHarness
from crewlet.testing.contracts.log_on_jetstream import JetStreamLogs
from crewlet.testing.contracts.logs import LOG_SUITE
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.slow


@pytest.fixture
async def logs(one_broker: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[LogHarness]:
    skip_where_absent(JetStreamLogs.absent, request)
    async with JetStreamLogs(one_broker) as harness:
        yield harness


globals().update(bound(LOG_SUITE, module=__name__))
