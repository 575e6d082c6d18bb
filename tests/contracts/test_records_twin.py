"""The record store's twin keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def records(request: pytest.FixtureRequest) -> AsyncIterator[contracts.RecordHarness]:
    skip_where_absent(MemoryRecords.absent, request)
    async with MemoryRecords() as harness:
        yield harness


class TestRecordWrites(contracts.RecordWrites): ...


class TestRevisions(contracts.Revisions): ...


class TestRemovals(contracts.Removals): ...


class TestListings(contracts.Listings): ...


class TestListingsUnderChange(contracts.ListingsUnderChange): ...


class TestWatchAnswers(contracts.WatchAnswers): ...


class TestWatches(contracts.Watches): ...


class TestWatchEnds(contracts.WatchEnds): ...


class TestMarkers(contracts.Markers): ...


class TestAges(contracts.Ages): ...


class TestStoreTimes(contracts.StoreTimes): ...


class TestUnknowns(contracts.Unknowns): ...


class TestLostReplies(contracts.LostReplies): ...


class TestLateWrites(contracts.LateWrites): ...


class TestHistories(contracts.Histories): ...
