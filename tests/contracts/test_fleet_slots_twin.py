"""What nodes settle among themselves, on the twin: every promise of these slots."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.contracts.slot_claims import DeliveryClaimPromises
from crewlet.testing.contracts.slot_config import ConfigPointerPromises
from crewlet.testing.contracts.slot_cooldowns import CooldownPromises
from crewlet.testing.contracts.slot_custody import CustodyPromises
from crewlet.testing.contracts.slot_fires import FirePromises
from crewlet.testing.contracts.slot_follows import FollowPromises
from crewlet.testing.contracts.slot_rate import RateValvePromises
from crewlet.testing.contracts.slot_rebases import RebasePromises
from crewlet.testing.contracts.slot_status import NodeStatusPromises

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def records() -> AsyncIterator[RecordHarness]:
    async with MemoryRecords() as harness:
        yield harness


class TestConfigPointer(ConfigPointerPromises): ...


class TestNodeStatus(NodeStatusPromises): ...


class TestDeliveryClaim(DeliveryClaimPromises): ...


class TestRateValve(RateValvePromises): ...


class TestCooldown(CooldownPromises): ...


class TestFire(FirePromises): ...


class TestRebase(RebasePromises): ...


class TestFollow(FollowPromises): ...


class TestCustody(CustodyPromises): ...
