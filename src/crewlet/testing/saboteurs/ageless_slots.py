"""Every saboteur of the slots whose records no clock takes away."""

from __future__ import annotations

from crewlet.testing.saboteurs.fleet_slots import SlotSaboteur
from crewlet.testing.saboteurs.slot_company_faults import CHANNEL_FAULTS, INTEGRATION_FAULTS, OBJECT_FAULTS
from crewlet.testing.saboteurs.slot_mailbox_faults import MAILBOX_FAULTS
from crewlet.testing.saboteurs.slot_onboarding_faults import ONBOARDING_FAULTS
from crewlet.testing.saboteurs.slot_pause_faults import PAUSE_COPY_FAULTS, PAUSE_FAULTS
from crewlet.testing.saboteurs.slot_position_faults import POSITION_FAULTS, SWEEP_FAULTS
from crewlet.testing.saboteurs.slot_run_faults import RUN_FAULTS
from crewlet.testing.saboteurs.slot_secret_faults import SECRET_FAULTS

__all__ = ["AGELESS_SLOT_SABOTEURS"]

AGELESS_SLOT_SABOTEURS: tuple[type[SlotSaboteur], ...] = (
    *RUN_FAULTS,
    *SECRET_FAULTS,
    *INTEGRATION_FAULTS,
    *OBJECT_FAULTS,
    *POSITION_FAULTS,
    *MAILBOX_FAULTS,
    *CHANNEL_FAULTS,
    *SWEEP_FAULTS,
    *PAUSE_FAULTS,
    *PAUSE_COPY_FAULTS,
    *ONBOARDING_FAULTS,
)
"""Each takes the place of a slot in the suite of that slot."""
