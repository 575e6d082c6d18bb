"""A bucket as the broker holds it: what its slot became, and the names that the broker knows it by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from crewlet.topics import bucket, bucket_stream, bucket_subject

__all__ = ["BucketInForce"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketInForce:
    """``slot`` is the slot's name; ``age_s`` the age in force, ``None`` for none; ``created_at`` when it was made.

    ``dated``: whether who writes is told when that was, see ``Slot``.
    """

    slot: str
    age_s: float | None = None
    created_at: datetime | None = None
    dated: bool = True

    @property
    def name(self) -> str:
        """The bucket's name."""
        return bucket(self.slot)

    @property
    def stream(self) -> str:
        """The stream behind it."""
        return bucket_stream(self.name)

    def subject(self, key: str) -> str:
        """What one key is written on, or the filter of a pattern of keys."""
        return bucket_subject(self.name, key)
