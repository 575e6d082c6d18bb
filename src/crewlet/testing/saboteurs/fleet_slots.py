"""Every saboteur of what nodes settle among themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Protocol

from crewlet.testing.saboteurs.slot_claim_faults import CLAIM_FAULTS
from crewlet.testing.saboteurs.slot_cooldown_faults import COOLDOWN_FAULTS
from crewlet.testing.saboteurs.slot_once_faults import CUSTODY_FAULTS, FIRE_FAULTS, REBASE_FAULTS
from crewlet.testing.saboteurs.slot_rate_faults import RATE_FAULTS
from crewlet.testing.saboteurs.slot_standing_faults import CONFIG_FAULTS, FOLLOW_FAULTS, STATUS_FAULTS

__all__ = ["FLEET_SLOT_SABOTEURS", "SlotSaboteur"]


class SlotSaboteur(Protocol):
    """A slot with one planted fault. ``caught_by`` is the promise that must find it out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


FLEET_SLOT_SABOTEURS: tuple[type[SlotSaboteur], ...] = (
    *CONFIG_FAULTS,
    *STATUS_FAULTS,
    *CLAIM_FAULTS,
    *RATE_FAULTS,
    *COOLDOWN_FAULTS,
    *FIRE_FAULTS,
    *REBASE_FAULTS,
    *FOLLOW_FAULTS,
    *CUSTODY_FAULTS,
)
"""Each takes the place of a slot in the suite of that slot."""
