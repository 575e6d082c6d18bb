"""The log's twin keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.contracts import log_appends, log_reads, log_unheard
from crewlet.testing.contracts.log_harness import LogHarness
from crewlet.testing.contracts.log_on_memory import MemoryLogs
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def logs(request: pytest.FixtureRequest) -> AsyncIterator[LogHarness]:
    skip_where_absent(MemoryLogs.absent, request)
    async with MemoryLogs() as harness:
        yield harness


class TestLogAppends(log_appends.LogAppends): ...


class TestFullLogs(log_appends.FullLogs): ...


class TestLogReads(log_reads.LogReads): ...


class TestLogRemains(log_reads.LogRemains): ...


class TestLogTrims(log_reads.LogTrims): ...


class TestUnheardAppends(log_unheard.UnheardAppends): ...


class TestLostLogs(log_unheard.LostLogs): ...
