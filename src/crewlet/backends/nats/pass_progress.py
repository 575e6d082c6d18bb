"""How far a pass over a bucket has come, and when it has shown enough. Pure: told, and asked, never waiting."""

from __future__ import annotations

from typing import Final

from crewlet.backends.nats.bucket_messages import Place

__all__ = ["PassProgress"]

_TIMES_PENDING: Final = 100


class PassProgress:
    """What deliveries and heartbeats say of one pass."""

    def __init__(self) -> None:
        self.delivered: int = 0
        self.position: int = 0
        self._pending: int = 0
        self._expected: int | None = None
        self._enough: int | None = None
        self._was_last = False
        self._level_at = 0

    def expect(self, deliveries: int) -> None:
        """The broker said, when it began, how many there would be."""
        self._expected = deliveries

    def took(self, at: Place) -> bool:
        """A message was delivered; ``False`` where one before it is missing."""
        delivery, self.position, _, self._pending = at
        self.delivered += 1
        if self._pending == 0:
            self._was_last, self._level_at = True, self.position
        return delivery == self.delivered

    def passed(self, revision: int) -> bool:
        """The broker has nothing to deliver up to there, whatever stood there once; returns whether that is news."""
        if revision <= self._level_at:
            return False
        self._level_at = revision
        self.position = max(self.position, revision)
        return True

    @property
    def may_be_over(self) -> bool:
        """Whether a delivery just made it worth asking :meth:`has_shown`."""
        return self._pending == 0 or self.delivered in (self._expected, self._enough)

    def has_shown(self, goal: int) -> bool:
        """Whether it showed what stood when it began, as a member holds it that had come as far as ``goal`` by then.

        With a goal it has to have passed it with nothing pending: then no key was shown as it had been before. Where
        others write so fast that something always is, it is enough to have gone on for many times what was pending.
        """
        if goal == 0:
            return self._was_last or (self._expected is not None and self.delivered >= self._expected)
        if self._level_at >= goal:
            return True
        if self.position < goal:
            return False
        if self._enough is None:
            self._enough = self.delivered + _TIMES_PENDING * (self._pending + 1)
        return self.delivered >= self._enough
