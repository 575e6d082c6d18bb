"""How a node's member of the brokers' cluster stands, as one look after another tells it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from crewlet.backends.nats import MemberHealth
from crewlet.base import limits

__all__ = ["MemberStanding", "MemberState", "after_look", "after_silence"]


class MemberState(StrEnum):
    """Whether the member keeps its copies, by its own word; ``UNKNOWN`` is neither yes nor no."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStanding:
    """What is said of the member, and why; empty where it is healthy.

    ``has_stopped``: it stores nothing until it is started again. ``unwell`` counts the looks that found it so since it
    was healthy last, ``silent`` those in a row that got no answer: one of either is an election, a restart or a busy
    machine.
    """

    state: MemberState = MemberState.HEALTHY
    why: str = ""
    has_stopped: bool = False
    unwell: int = 0
    silent: int = 0


def after_look(before: MemberStanding, health: MemberHealth) -> MemberStanding:
    """The standing once the member has said what it lacks; healthy at once where that is nothing."""
    if not health.lacks:
        return MemberStanding()
    unwell = before.unwell + 1
    if unwell < limits.MEMBER_UNWELL_LOOKS:
        return replace(before, unwell=unwell, silent=0)
    first, *others = health.lacks
    why = f"{first} (and {len(others)} more)" if others else first
    return MemberStanding(state=MemberState.UNHEALTHY, why=why, has_stopped=health.has_stopped, unwell=unwell)


def after_silence(before: MemberStanding, why: str) -> MemberStanding:
    """The standing once the member has said nothing; what held before holds for the first few times."""
    silent = before.silent + 1
    if silent < limits.MEMBER_SILENT_LOOKS:
        return replace(before, silent=silent)
    return MemberStanding(state=MemberState.UNKNOWN, why=why, unwell=before.unwell, silent=silent)
