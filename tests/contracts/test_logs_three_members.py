"""The log on three members keeps every promise of its contract, whoever leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import log_appends, log_reads, log_unheard
from crewlet.testing.contracts.log_harness import LogHarness
from crewlet.testing.contracts.log_on_jetstream import ClusterLogs
from tests.contracts.capabilities import skip_where_absent

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def logs(three_members: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[LogHarness]:
    skip_where_absent(ClusterLogs.absent, request)
    async with ClusterLogs(three_members) as harness:
        yield harness


class TestLogAppends(log_appends.LogAppends): ...


class TestFullLogs(log_appends.FullLogs): ...


class TestLogReads(log_reads.LogReads): ...


class TestLogRemains(log_reads.LogRemains): ...


class TestLogTrims(log_reads.LogTrims): ...


class TestUnheardAppends(log_unheard.UnheardAppends): ...


class TestLostLogs(log_unheard.LostLogs): ...
