"""Every slot without an age keeps its promises on the twin."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.ageless_slots import AGELESS_SLOTS
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from tests.contracts.binding import bound

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def records() -> AsyncIterator[RecordHarness]:
    async with MemoryRecords() as harness:
        yield harness


globals().update(bound(AGELESS_SLOTS, module=__name__))
