"""The leases over one broker keep every promise of their contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.lease_on_records import StoredLeases
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from tests.contracts.binding import bound

pytestmark = pytest.mark.slow


@pytest.fixture
async def leases(one_broker: Cluster) -> AsyncIterator[contracts.LeaseHarness]:
    async with JetStreamRecords(one_broker) as records, StoredLeases(records) as harness:
        yield harness


globals().update(bound(contracts.LEASE_SUITE, module=__name__))
