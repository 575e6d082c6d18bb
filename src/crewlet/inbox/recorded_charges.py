"""The charges of a turn's recorded replies: by which lane each is known, and which may not be counted yet. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from crewlet.inbox.journal_entries import Replied
from crewlet.llm import Usage

__all__ = ["RecordedCharge", "charge_of", "lane_of", "last_charges"]

_WORKERS: Final = "/delegate/"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCharge:
    """What one recorded reply cost; ``lane`` and ``number`` make its charge known again."""

    lane: str
    number: int
    usage: Usage
    provider_key: str = ""
    model: str = ""


def lane_of(turn_id: str, phase: str) -> str:
    """What the charges of a phase are known by: its turn, and a worker's apart from it."""
    _, mark, task = phase.partition(_WORKERS)
    return f"{turn_id}/{task.split('/')[1]}" if mark else turn_id


def charge_of(turn_id: str, replied: Replied) -> RecordedCharge:
    """The charge of one reply."""
    reply = replied.reply
    return RecordedCharge(
        lane=lane_of(turn_id, replied.phase),
        number=replied.number,
        usage=Usage(reply.input_tokens, reply.output_tokens, reply.cache_read_tokens, reply.cache_write_tokens),
        provider_key=reply.provider_key,
        model=reply.model,
    )


def last_charges(turn_id: str, replies: Iterable[Replied]) -> dict[str, RecordedCharge]:
    """Of each lane the last, by lane: whoever recorded a later one had counted those before it."""
    last: dict[str, RecordedCharge] = {}
    for replied in sorted(replies, key=lambda each: each.number):
        charge = charge_of(turn_id, replied)
        if charge.usage.total:
            last[charge.lane] = charge
    return last
