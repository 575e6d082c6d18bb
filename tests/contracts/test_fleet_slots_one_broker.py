"""What nodes settle among themselves, on one broker: every promise of these slots."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.fleet_slots import FLEET_SLOTS
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from tests.contracts.binding import bound

pytestmark = pytest.mark.slow


@pytest.fixture
async def records(one_broker: Cluster) -> AsyncIterator[RecordHarness]:
    async with JetStreamRecords(one_broker) as harness:
        yield harness


globals().update(bound(FLEET_SLOTS, module=__name__))
