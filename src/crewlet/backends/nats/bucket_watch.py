"""A watch on a bucket: a certified listing, then every change from the very same pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from crewlet.backends.nats.bucket_leader import BucketLeader
from crewlet.backends.nats.bucket_listing import Answer, certified
from crewlet.backends.nats.bucket_messages import Shown
from crewlet.backends.nats.bucket_pass import BucketPass
from crewlet.base import limits
from crewlet.coordination import Change, Record, Revision, Watch

__all__ = ["BucketWatch", "PassMaker"]

PassMaker = Callable[[Callable[[Shown], None]], BucketPass]
"""Makes the pass, unopened, which tells what it is given what it is shown."""


class BucketWatch(Watch):
    """See ``Watch``. Whoever made it opens it once and closes it."""

    def __init__(self, leader: BucketLeader, patterns: Sequence[str], make_pass: PassMaker) -> None:
        self._leader = leader
        self._patterns = patterns
        self._walk = make_pass(self._on_shown)
        self._shown: dict[str, Shown] | None = {}
        self._changes: deque[Shown] = deque()
        self._answer = Answer((), {}, 0)
        self._settled: Mapping[str, int] = {}

    @property
    def answer(self) -> tuple[Record, ...]:
        """What stood when the watch began."""
        return self._answer.records

    @property
    def position(self) -> Revision:
        """How far the pass has come."""
        return self._walk.position

    async def open(self) -> None:
        """Take the answer. Raises ``Unavailable``."""
        self._answer = await certified(self._leader, self._walk, self._patterns, self._take_shown)
        self._settled = self._answer.settled

    async def next(self) -> Change:
        """The next change."""
        while True:
            self._walk.check()
            while self._changes:
                item = self._changes.popleft()
                if self._is_news(item):
                    return Change(item.key, item if isinstance(item, Record) else None, item.revision)
            await self._walk.wait_shown()

    async def close(self) -> None:
        """End it; harmless when repeated."""
        self._changes.clear()
        await self._walk.close()

    def _is_news(self, item: Shown) -> bool:
        """Whether it is newer than what the answer settled for its key, which may have been read past the pass."""
        return item.revision > self._settled.get(item.key, self._answer.revision)

    def _take_shown(self) -> dict[str, Shown]:
        """What the pass showed; from here on it shows changes."""
        shown, self._shown = self._shown or {}, None
        return shown

    def _on_shown(self, item: Shown) -> None:
        if self._shown is not None:
            self._shown[item.key] = item
            return
        self._changes.append(item)
        if len(self._changes) > limits.WATCH_BACKLOG_MAX:
            self._changes.clear()
            self._walk.give_up(f"more than {limits.WATCH_BACKLOG_MAX} changes were not taken")
        self._walk.stir()
