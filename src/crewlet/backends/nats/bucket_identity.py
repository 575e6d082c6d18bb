"""Whether the stream behind a running store is still the one that it was opened on."""

from __future__ import annotations

from datetime import datetime

import structlog

from crewlet.backends.nats.bucket_in_force import BucketInForce
from crewlet.base.errors import Unavailable

__all__ = ["BucketIdentity", "BucketReplaced"]

_log = structlog.get_logger(__name__)


class BucketReplaced(Unavailable):
    """The stream is another one than was opened: asking again will not help."""


class BucketIdentity:
    """A stream that was lost and made anew is empty, and its revisions start again: no fence may be read from it.

    Its time of creation gives it away, in every answer that carries one; so does a write that lands at a revision
    that was there before. Once it was seen, nothing is answered any more until the node opens its buckets again.
    """

    def __init__(self, bucket: BucketInForce) -> None:
        self._bucket = bucket
        self._created_at = bucket.created_at
        self._newest = 0
        self._replaced = ""
        self._is_gone = False

    @property
    def is_lost(self) -> bool:
        """Whether the last that was heard of the stream is that there is none, or another than was opened."""
        return self._is_gone or self._replaced != ""

    def saw_nothing(self) -> None:
        """The broker knows of no such stream."""
        self._is_gone = True

    def check(self) -> None:
        """Raises ``BucketReplaced`` once the stream was seen to be another one."""
        if self._replaced:
            raise BucketReplaced(self._replaced)

    def saw_creation(self, created_at: datetime) -> None:
        """An answer says when the stream was made. Raises ``BucketReplaced`` where that is another one than ours."""
        self._is_gone = False
        if self._created_at is None:
            self._created_at = created_at
        if created_at != self._created_at:
            self._give_up(f"made at {self._created_at}, and now there is one made at {created_at}")
        self.check()

    def begin_again(self, created_at: datetime) -> None:
        """The stream was made anew on purpose, at ``created_at``: what was known of the one before is over."""
        self._created_at, self._newest, self._replaced, self._is_gone = created_at, 0, "", False

    @property
    def created_at(self) -> datetime | None:
        """When the stream was made."""
        return self._created_at

    @property
    def newest(self) -> int:
        """The highest revision that the bucket has shown us."""
        return self._newest

    def saw_revision(self, revision: int, *, behind: int = 0) -> None:
        """The bucket has come as far as ``revision``. A write that was sent after ``behind`` was known lands above it.

        Raises ``BucketReplaced`` where it did not.
        """
        if revision <= behind:
            self._give_up(f"at revision {behind}, and now a write lands at {revision}")
        self._newest = max(self._newest, revision)
        self.check()

    def _give_up(self, what: str) -> None:
        if not self._replaced:
            self._replaced = f"the bucket {self._bucket.name} was lost and made anew: it was {what}"
            _log.error("bucket_replaced", bucket=self._bucket.name, what=what)
