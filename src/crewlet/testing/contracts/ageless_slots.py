"""The suites of the slots whose records no clock takes away, and of what is built on them."""

from __future__ import annotations

from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.slot_channels import ChannelPromises
from crewlet.testing.contracts.slot_integrations import IntegrationPromises
from crewlet.testing.contracts.slot_mailboxes import MailboxPromises, RetirementPromises
from crewlet.testing.contracts.slot_marker_sweep import MarkerSweepPromises
from crewlet.testing.contracts.slot_objects import ObjectPromises
from crewlet.testing.contracts.slot_onboardings import OnboardingPromises
from crewlet.testing.contracts.slot_pause_copy import PauseCopyPromises
from crewlet.testing.contracts.slot_positions import PositionPromises
from crewlet.testing.contracts.slot_sandbox_runs import RunFencePromises, SandboxRunPromises
from crewlet.testing.contracts.slot_seat_pauses import SeatPausePromises
from crewlet.testing.contracts.slot_secrets import SecretPromises

__all__ = ["AGELESS_SLOTS"]

AGELESS_SLOTS: tuple[type[Contract], ...] = (
    SandboxRunPromises,
    RunFencePromises,
    SecretPromises,
    IntegrationPromises,
    ObjectPromises,
    PositionPromises,
    MailboxPromises,
    RetirementPromises,
    ChannelPromises,
    MarkerSweepPromises,
    SeatPausePromises,
    PauseCopyPromises,
    OnboardingPromises,
)
"""One suite or more for each of them."""
