"""The leases over the record store's twin keep every promise of their contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing import contracts
from crewlet.testing.contracts.lease_on_records import StoredLeases
from crewlet.testing.contracts.record_on_memory import MemoryRecords

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def leases() -> AsyncIterator[contracts.LeaseHarness]:
    async with MemoryRecords() as records, StoredLeases(records) as harness:
        yield harness


class TestTenures(contracts.Tenures): ...


class TestRenewals(contracts.Renewals): ...


class TestReleases(contracts.Releases): ...


class TestHeldLeases(contracts.HeldLeases): ...


class TestLeaseNames(contracts.LeaseNames): ...


class TestDutyLeases(contracts.DutyLeases): ...


class TestFailedClaims(contracts.FailedClaims): ...


class TestStoppedClaims(contracts.StoppedClaims): ...


class TestFailedReleases(contracts.FailedReleases): ...


class TestProtocolGates(contracts.ProtocolGates): ...


class TestSuccessorsFields(contracts.SuccessorsFields): ...
