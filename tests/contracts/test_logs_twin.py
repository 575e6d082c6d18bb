"""The log's twin keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.contracts.log_harness import LogHarness
from crewlet.testing.contracts.log_on_memory import MemoryLogs
from crewlet.testing.contracts.logs import LOG_SUITE
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def logs(request: pytest.FixtureRequest) -> AsyncIterator[LogHarness]:
    skip_where_absent(MemoryLogs.absent, request)
    async with MemoryLogs() as harness:
        yield harness


globals().update(bound(LOG_SUITE, module=__name__))
