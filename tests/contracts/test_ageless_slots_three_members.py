"""Every slot without an age keeps its promises on three members, whoever leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.ageless_slots import AGELESS_SLOTS
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords
from tests.contracts.binding import bound

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def records(three_members: Cluster) -> AsyncIterator[RecordHarness]:
    async with ClusterRecords(three_members) as harness:
        yield harness


globals().update(bound(AGELESS_SLOTS, module=__name__))
