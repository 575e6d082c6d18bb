"""The leases over the record store's twin keep every promise of their contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.contracts.lease_on_records import StoredLeases
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from tests.contracts.binding import bound

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def leases() -> AsyncIterator[contracts.LeaseHarness]:
    async with MemoryRecords() as records, StoredLeases(records) as harness:
        yield harness


globals().update(bound(contracts.LEASE_SUITE, module=__name__))
