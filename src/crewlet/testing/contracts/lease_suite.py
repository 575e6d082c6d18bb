"""Every promise of the leases, by the noun it is about."""

from __future__ import annotations

from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.lease_failures import FailedClaims, FailedReleases, StoppedClaims
from crewlet.testing.contracts.lease_gates import ProtocolGates, SuccessorsFields
from crewlet.testing.contracts.lease_listings import DutyLeases, HeldLeases, LeaseNames
from crewlet.testing.contracts.leases import Releases, Renewals, Tenures

__all__ = ["LEASE_SUITE"]

LEASE_SUITE: tuple[type[Contract], ...] = (
    Tenures,
    Renewals,
    Releases,
    HeldLeases,
    LeaseNames,
    DutyLeases,
    FailedClaims,
    StoppedClaims,
    FailedReleases,
    ProtocolGates,
    SuccessorsFields,
)
"""In the order in which they are read."""
