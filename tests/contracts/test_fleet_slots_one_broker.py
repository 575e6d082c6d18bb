"""What nodes settle among themselves, on one broker: every promise of these slots."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from crewlet.testing.contracts.slot_claims import DeliveryClaimPromises
from crewlet.testing.contracts.slot_config import ConfigPointerPromises
from crewlet.testing.contracts.slot_cooldowns import CooldownPromises
from crewlet.testing.contracts.slot_custody import CustodyPromises
from crewlet.testing.contracts.slot_fires import FirePromises
from crewlet.testing.contracts.slot_follows import FollowPromises
from crewlet.testing.contracts.slot_rate import RateValvePromises
from crewlet.testing.contracts.slot_rebases import RebasePromises
from crewlet.testing.contracts.slot_status import NodeStatusPromises

pytestmark = pytest.mark.slow


@pytest.fixture
async def records(one_broker: Cluster) -> AsyncIterator[RecordHarness]:
    async with JetStreamRecords(one_broker) as harness:
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
