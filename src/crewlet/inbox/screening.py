"""What of a partition is still to be worked, given what the ledger has. Pure but for the sources' words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from crewlet.events import Event
from crewlet.inbox.message_keys import ledger_key_of
from crewlet.notify import Sources
from crewlet.queue import Delivery

__all__ = ["ANSWERED_LATER", "WORKED_ALREADY", "Screened", "asked_of_ledger", "screened", "spent_of", "without_repeats"]

WORKED_ALREADY: Final = "worked already"
ANSWERED_LATER: Final = "a later turn answered it in its thread"


@dataclass(frozen=True, slots=True)
class Screened:
    """``fresh`` is to be worked; ``worked`` is not, each with why."""

    fresh: tuple[Delivery, ...]
    worked: tuple[tuple[Event, str], ...]


def without_repeats(deliveries: Sequence[Delivery]) -> tuple[Delivery, ...]:
    """One delivery for each event id, the one with the most deliveries left: the others say the same (E-103)."""
    kept: dict[str, Delivery] = {}
    for delivery in deliveries:
        known = kept.get(delivery.event.id)
        if known is None or delivery.headroom > known.headroom:
            kept[delivery.event.id] = delivery
    return tuple(kept.values())


def asked_of_ledger(deliveries: Sequence[Delivery], sources: Sources) -> dict[str, str]:
    """The chat key of each event that has one, by event id."""
    keys = {delivery.event.id: ledger_key_of(delivery.event, sources) for delivery in deliveries}
    return {event_id: key for event_id, key in keys.items() if key}


def screened(deliveries: Sequence[Delivery], recorded: Collection[str], chat_keys: dict[str, str]) -> Screened:
    """A trigger is dropped when either of its keys is recorded (S-115)."""
    fresh: list[Delivery] = []
    worked: list[tuple[Event, str]] = []
    for delivery in deliveries:
        event = delivery.event
        if event.id in recorded:
            worked.append((event, WORKED_ALREADY))
        elif chat_keys.get(event.id) in recorded:
            worked.append((event, ANSWERED_LATER))
        else:
            fresh.append(delivery)
    return Screened(tuple(fresh), tuple(worked))


def spent_of(deliveries: Sequence[Delivery]) -> tuple[Event, ...]:
    """What becomes a dead letter if it is handed back now."""
    return tuple(delivery.event for delivery in deliveries if delivery.headroom == 0)
