"""The record store on one broker keeps every promise of its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.slow


@pytest.fixture
async def records(one_broker: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[contracts.RecordHarness]:
    skip_where_absent(JetStreamRecords.absent, request)
    async with JetStreamRecords(one_broker) as harness:
        yield harness


globals().update(bound(contracts.RECORD_SUITE, module=__name__))
