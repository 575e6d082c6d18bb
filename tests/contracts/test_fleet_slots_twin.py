"""What nodes settle among themselves, on the twin: every promise of these slots."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.fleet_slots import FLEET_SLOTS
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from tests.contracts.binding import bound

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def records() -> AsyncIterator[RecordHarness]:
    async with MemoryRecords() as harness:
        yield harness


globals().update(bound(FLEET_SLOTS, module=__name__))
