"""What a person is shown of the shared records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["RecordPage", "RecordView", "SlotView"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """One slot: how long its records live (null: until somebody removes them) and why, the classes of its keys."""

    name: str
    age_s: float | None
    why: str
    classes: Sequence[str]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One record; ``value`` is what it holds, null where ``sealed``."""

    key: str
    revision: int
    written_at: datetime
    size_bytes: int
    sealed: bool
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """Records by key; give ``next`` as ``after`` for the page behind, null is the end."""

    records: Sequence[RecordView]
    next: str | None
    note: str
