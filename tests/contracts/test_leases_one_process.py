"""The leases of a single process keep every promise of their contract that needs no store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.contracts.lease_on_memory import LocalLeases
from tests.contracts.binding import bound
from tests.contracts.capabilities import skip_where_absent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def leases(request: pytest.FixtureRequest) -> AsyncIterator[contracts.LeaseHarness]:
    skip_where_absent(LocalLeases.absent, request)
    async with LocalLeases() as harness:
        yield harness


globals().update(bound(contracts.LEASE_SUITE, module=__name__))
