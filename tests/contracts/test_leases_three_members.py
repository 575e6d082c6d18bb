"""The leases over three members keep every promise of their contract, whoever leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.lease_on_records import StoredLeases
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords
from tests.contracts.binding import bound

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def leases(three_members: Cluster) -> AsyncIterator[contracts.LeaseHarness]:
    async with ClusterRecords(three_members) as records, StoredLeases(records) as harness:
        yield harness


globals().update(bound(contracts.LEASE_SUITE, module=__name__))
