"""What the broker would hold of one slot: the last message of each key, record or removal marker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from crewlet.backends.memory.record_patterns import covering
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Change, Record, Revision, Slot, StoreTime

__all__ = ["MemoryBucket"]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The last message of a key: ``record`` is ``None`` where it says that the key was removed."""

    key: str
    record: Record | None
    revision: Revision
    written_at: datetime


class _Told(Protocol):
    """Who is told of every write, and when there are none any more that it could be told of."""

    def tell(self, change: Change) -> None: ...

    def end(self) -> None: ...


class MemoryBucket:
    """One bucket, on a clock of its own, that any number of clients share. While ``cut``, none of them hears anything.

    ``uncertainty_s`` is how far off its clients know its time.
    """

    def __init__(self, slot: Slot, clock: Clock, *, uncertainty_s: float = 0.0) -> None:
        self.slot = slot
        self._clock = clock
        self._uncertainty = timedelta(seconds=uncertainty_s)
        self._age = None if slot.age_s is None else timedelta(seconds=slot.age_s)
        self._cut = False
        # In the order of their revisions, which is that of their ages too.
        self._kept = OrderedDict[str, _Kept]()
        self._classes: dict[str, dict[str, None]] = {}
        self._watches: list[_Told] = []
        self._last_revision = 0

    @property
    def cut(self) -> bool:
        """Whether no client hears anything: nobody leads the bucket, or nobody is there."""
        return self._cut

    @cut.setter
    def cut(self, cut: bool) -> None:
        self._cut = cut
        if cut:
            for watch in [*self._watches]:
                watch.end()

    def check_reachable(self) -> None:
        """Raises ``Unavailable`` while cut."""
        if self._cut:
            raise Unavailable(f"{self.slot.name}: cut off")

    def time(self) -> StoreTime:
        """The bucket's own time, as its clients know it."""
        now = self._clock.now()
        return StoreTime(now - self._uncertainty, now + self._uncertainty)

    def live(self, key: str) -> Record | None:
        """The record under ``key``, unless its age has passed."""
        self._forget_aged()
        kept = self._kept.get(key)
        return None if kept is None else kept.record

    def all_live(self, keys: Iterable[str]) -> list[Record]:
        """The records under ``keys``, where there are any."""
        self._forget_aged()
        found = map(self._kept.get, keys)
        return [kept.record for kept in found if kept is not None and kept.record is not None]

    def keys(self, patterns: Iterable[str]) -> list[str]:
        """Every key under any of the patterns of which anything is held."""
        self._forget_aged()
        return [*{key: None for each in patterns for key in filter(covering([each]), self._class_of(each))}]

    def newest(self) -> Revision:
        """The revision of the newest message held, a marker's included; 0 for none."""
        self._forget_aged()
        return next((kept.revision for kept in reversed(self._kept.values())), Revision(0))

    def markers(self, before: datetime) -> list[tuple[str, Revision]]:
        """The removal markers written before this."""
        self._forget_aged()
        old = (kept for kept in self._kept.values() if kept.record is None and kept.written_at < before)
        return [(kept.key, kept.revision) for kept in old]

    def write(self, key: str, value: bytes, expected: int) -> Record:
        """Store ``value`` under the next revision. Raises ``Conflict`` where ``expected`` is not live (0: none is)."""
        self._expect(key, expected)
        record = Record(key, value, self._next_revision(), self._clock.now())
        self._keep(_Kept(key, record, record.revision, record.written_at))
        return record

    def remove(self, key: str, expected: int) -> None:
        """Leave a removal marker over ``expected``, where there is a record. Raises ``Conflict``."""
        if self.live(key) is not None:
            self._expect(key, expected)
            self._keep(_Kept(key, None, self._next_revision(), self._clock.now()))

    def purge(self, key: str, revision: Revision) -> bool:
        """Forget what is held of ``key`` if it is ``revision`` still; whether it was."""
        held = self._kept.get(key)
        if held is None or held.revision != revision:
            return False
        self._forget(key)
        return True

    def attach(self, watch: _Told) -> None:
        """Every write from now on is told to ``watch``."""
        self._watches.append(watch)

    def detach(self, watch: _Told) -> None:
        """No write is told to ``watch`` any more."""
        if watch in self._watches:
            self._watches.remove(watch)

    def _expect(self, key: str, expected: int) -> None:
        live = self.live(key)
        current = 0 if live is None else int(live.revision)
        if current != expected:
            raise Conflict(key, expected=expected, current=current)

    def _keep(self, kept: _Kept) -> None:
        self._kept[kept.key] = kept
        self._kept.move_to_end(kept.key)
        self._class_of(kept.key)[kept.key] = None
        change = Change(kept.key, kept.record, kept.revision)
        for watch in self._watches:
            watch.tell(change)

    def _forget_aged(self) -> None:
        if self._age is None or not self._kept:
            return
        born = self._clock.now() - self._age
        while (oldest := next(iter(self._kept.values()), None)) is not None and oldest.written_at <= born:
            self._forget(oldest.key)

    def _forget(self, key: str) -> None:
        del self._kept[key]
        del self._class_of(key)[key]

    def _class_of(self, pattern: str) -> dict[str, None]:
        return self._classes.setdefault(pattern.partition(".")[0], {})

    def _next_revision(self) -> Revision:
        self._last_revision += 1
        return Revision(self._last_revision)
