"""The record store's twin keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def records(request: pytest.FixtureRequest) -> AsyncIterator[contracts.RecordHarness]:
    skip_where_absent(MemoryRecords.absent, request)
    async with MemoryRecords() as harness:
        yield harness


globals().update(bound(contracts.RECORD_SUITE, module=__name__))
