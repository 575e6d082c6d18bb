"""The record store on three members keeps every promise of its contract, whoever leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def records(three_members: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[contracts.RecordHarness]:
    skip_where_absent(ClusterRecords.absent, request)
    async with ClusterRecords(three_members) as harness:
        yield harness


globals().update(bound(contracts.RECORD_SUITE, module=__name__))
