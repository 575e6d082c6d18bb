"""The saboteurs of the leases' suite."""

from __future__ import annotations

from crewlet.testing.saboteurs.lease_failure_faults import LEASE_FAILURE_FAULTS
from crewlet.testing.saboteurs.lease_gate_faults import LEASE_GATE_FAULTS
from crewlet.testing.saboteurs.lease_listing_faults import LEASE_LISTING_FAULTS
from crewlet.testing.saboteurs.lease_saboteur import LeaseSaboteur
from crewlet.testing.saboteurs.lease_tenure_faults import TENURE_FAULTS

__all__ = ["LEASE_SABOTEURS"]

LEASE_SABOTEURS: tuple[type[LeaseSaboteur], ...] = (
    *TENURE_FAULTS,
    *LEASE_LISTING_FAULTS,
    *LEASE_FAILURE_FAULTS,
    *LEASE_GATE_FAULTS,
)
"""Each with one planted fault."""
