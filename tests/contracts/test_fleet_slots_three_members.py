"""What nodes settle among themselves, on three members whose leaders step down in the middle of a case."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.fleet_slots import FLEET_SLOTS
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords
from tests.contracts.binding import bound

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def records(three_members: Cluster) -> AsyncIterator[RecordHarness]:
    async with ClusterRecords(three_members) as harness:
        yield harness


globals().update(bound(FLEET_SLOTS, module=__name__))
