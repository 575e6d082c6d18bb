"""How a node's member of the brokers' cluster stands, as one look after another tells it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

    ``has_stopped``: it stores nothing, or not everything, until it is started again. ``behind`` is what it lacked at
    the last look, by stream. ``unwell`` counts the looks that found it so since it was healthy last, ``silent`` those
    in a row that got no answer: one of either is an election, a restart or a busy machine. ``stalled`` counts the
    looks in a row at which a copy had come no nearer.
    """

    state: MemberState = MemberState.HEALTHY
    why: str = ""
    has_stopped: bool = False
    behind: Mapping[str, int] = field(default_factory=dict[str, int])
    unwell: int = 0
    silent: int = 0
    stalled: int = 0


def after_look(before: MemberStanding, health: MemberHealth) -> MemberStanding:
    """The standing once the member was looked at; healthy at once where nothing is wrong."""
    stuck = {stream: lag for stream, lag in health.behind.items() if lag >= before.behind.get(stream, lag + 1)}
    if not health.lacks and not stuck:
        return MemberStanding(behind=health.behind)
    unwell, stalled = before.unwell + 1, before.stalled + 1 if stuck else 0
    counted = replace(before, behind=health.behind, unwell=unwell, stalled=stalled, silent=0)
    if unwell < limits.MEMBER_UNWELL_LOOKS:
        return counted
    # Whoever only waits for others, or comes nearer, is let be: a restart would cost it what it has caught up.
    given_up = stalled >= limits.MEMBER_STALLED_LOOKS and health.others_whole
    first, *others = [*health.lacks, *(f"its copy of {stream} lacks {lag} entries" for stream, lag in stuck.items())]
    return replace(
        counted,
        state=MemberState.UNHEALTHY,
        why=f"{first} (and {len(others)} more)" if others else first,
        has_stopped=health.has_stopped or given_up,
    )


def after_silence(before: MemberStanding, why: str) -> MemberStanding:
    """The standing once the member has said nothing; what held before holds for the first few times."""
    silent = before.silent + 1
    if silent < limits.MEMBER_SILENT_LOOKS:
        return replace(before, silent=silent)
    return MemberStanding(state=MemberState.UNKNOWN, why=why, unwell=before.unwell, silent=silent)
