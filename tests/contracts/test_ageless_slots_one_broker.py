"""Every slot without an age keeps its promises on one broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.ageless_slots import AGELESS_SLOTS
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from tests.contracts.binding import bound

pytestmark = pytest.mark.slow


@pytest.fixture
async def records(one_broker: Cluster) -> AsyncIterator[RecordHarness]:
    async with JetStreamRecords(one_broker) as harness:
        yield harness


globals().update(bound(AGELESS_SLOTS, module=__name__))
