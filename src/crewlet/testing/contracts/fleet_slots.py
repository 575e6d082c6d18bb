"""The suites of what nodes settle among themselves: pointer, statuses, claims, valve, cooldowns and the like."""

from __future__ import annotations

from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.slot_claims import DeliveryClaimPromises
from crewlet.testing.contracts.slot_config import ConfigPointerPromises
from crewlet.testing.contracts.slot_cooldowns import CooldownPromises
from crewlet.testing.contracts.slot_custody import CustodyPromises
from crewlet.testing.contracts.slot_fires import FirePromises
from crewlet.testing.contracts.slot_follows import FollowPromises
from crewlet.testing.contracts.slot_rate import RateValvePromises
from crewlet.testing.contracts.slot_rebases import RebasePromises
from crewlet.testing.contracts.slot_status import NodeStatusPromises

__all__ = ["FLEET_SLOTS"]

FLEET_SLOTS: tuple[type[Contract], ...] = (
    ConfigPointerPromises,
    NodeStatusPromises,
    DeliveryClaimPromises,
    RateValvePromises,
    CooldownPromises,
    FirePromises,
    RebasePromises,
    FollowPromises,
    CustodyPromises,
)
"""A suite for each of these slots."""
