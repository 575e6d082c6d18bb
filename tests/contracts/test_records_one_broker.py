"""The record store on one broker keeps every promise of its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.slow


@pytest.fixture
async def records(one_broker: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[contracts.RecordHarness]:
    skip_where_absent(JetStreamRecords.absent, request)
    async with JetStreamRecords(one_broker) as harness:
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
