"""The gate of mixed fleets: whether a live seat or presence lease is held at a lower protocol than ours (S1).

Asked of a view that takes in every write to the bucket, after the view has reached the bucket's last write: the answer
is the one that a full read would give, and costs the same however many leases there are (S-198, S-199).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination.contract import Record, RecordStore, Revision, Watch
from crewlet.coordination.lease_record import can_be_ttl
from crewlet.coordination.slots import LEASES

__all__ = ["LowerLease", "ProtocolGate"]

_log = structlog.get_logger(__name__)

_PATTERNS: Final = tuple(f"{kind}.>" for kind in LEASES.classes)
_UNREADABLE: Final = -1


@dataclass(frozen=True, slots=True)
class LowerLease:
    """A lease that holds us back: who holds it at which protocol, and when it lapses on the store's clock."""

    owner: str
    protocol: int
    ends_at: datetime


class _Said(msgspec.Struct, frozen=True):
    """Of a lease's record, what the gate asks about."""

    owner: str = ""
    protocol: int = 0
    ttl_s: float = 0.0


class ProtocolGate:
    """The view, kept while claims are judged and for ``GATE_VIEW_IDLE_S`` after the last (S-201)."""

    def __init__(self, leases: RecordStore, *, protocol: int) -> None:
        self._store = leases
        self._protocol = protocol
        self._tasks = Tasks("protocol_gate")
        self._view: _View | None = None
        self._is_closed = False

    @property
    def is_awake(self) -> bool:
        """Whether a view is kept now."""
        return self._view is not None

    async def lowest(self) -> LowerLease | None:
        """The live lease at the lowest protocol, of those below ours; ``None`` where there is none.

        Raises ``Unavailable`` where the view could not be brought up to the bucket's last write in time.
        """
        try:
            async with asyncio.timeout(limits.GATE_VIEW_WAIT_S):
                view = await self._level_view()
        except TimeoutError as error:
            raise Unavailable(f"{self._store.name}: no view of it up to its last write") from error
        if not view.lower:
            return None
        return view.lowest_live((await self._store.time()).is_surely_past)

    async def close(self) -> None:
        """Keep no view any more, and judge nothing."""
        self._is_closed = True
        await self._tasks.close()

    async def _level_view(self) -> _View:
        """A view that has taken in everything up to the bucket's last write, as it was at some moment of this call."""
        await self._opened()
        target = await self._store.last_revision()
        while not await (view := await self._opened()).reached(target):
            # That message may have aged out unseen: what is the last one now may come before it. It never moves on, or
            # a view that is a little behind a busy bucket would never come level.
            target = min(target, await self._store.last_revision())
        return view

    async def _opened(self) -> _View:
        if self._is_closed:
            raise Unavailable(f"{self._store.name}: the protocol gate is closed")
        view = self._view
        if view is None:
            view = self._view = _View(self._protocol, self._store.age_s)
            self._tasks.start("view", self._keep(view))
        view.used()
        await view.opened.wait()
        if view.failure is not None:
            raise Unavailable(f"{self._store.name}: no view of it: {view.failure}") from view.failure
        return view

    async def _keep(self, view: _View) -> None:
        try:
            async with self._store.watch(*_PATTERNS) as watch, view.awake():
                await view.follow(watch)
        except Unavailable as error:
            _log.debug("protocol_gate_view_over", error=str(error))
            view.failure = None if view.opened.is_set() else error
        finally:
            if self._view is view:
                self._view = None
            view.end()


class _View:
    """The leases below our protocol, as one watch tells of them."""

    def __init__(self, protocol: int, age_s: float | None) -> None:
        self.lower: dict[str, tuple[Revision, LowerLease]] = {}
        self.opened = asyncio.Event()
        self.failure: Unavailable | None = None
        self._protocol = protocol
        self._age_s = age_s
        self._watch: Watch | None = None
        self._taken_in = Revision(0)
        self._idle: asyncio.Timeout | None = None
        self._is_over = False
        self._moved = asyncio.Event()

    def used(self) -> None:
        """Somebody judges by it now."""
        # In the moment in which it falls asleep it cannot be kept awake any more: whoever judges opens another.
        if self._idle is not None and not self._idle.expired() and not self._is_over:
            self._idle.reschedule(asyncio.get_running_loop().time() + limits.GATE_VIEW_IDLE_S)

    @asynccontextmanager
    async def awake(self) -> AsyncGenerator[None]:
        """Ends what is inside once nobody has judged by it for a while."""
        try:
            async with asyncio.timeout(limits.GATE_VIEW_IDLE_S) as self._idle:
                yield
        except TimeoutError:
            _log.debug("protocol_gate_view_asleep")
        finally:
            self._idle = None

    async def follow(self, watch: Watch) -> None:
        """Take in what stands, then every change. Raises ``Unavailable`` when the watch is over."""
        for record in watch.answer:
            self._take(record.key, record.revision, record)
        self._watch = watch
        self.opened.set()
        while True:
            await self._take_next(watch)

    async def reached(self, target: Revision) -> bool:
        """Whether everything up to ``target`` is taken in; false after a while without, or when the view is over."""
        deadline_s = asyncio.get_running_loop().time() + limits.GATE_VIEW_REREAD_S
        while self._taken_in < target:
            if self._is_over or asyncio.get_running_loop().time() >= deadline_s:
                return False
            if self._watch is not None and self._watch.position >= target:
                await self._take_shown(self._watch)
                self._taken_in = max(self._taken_in, target)
            else:
                await self._moved_on()
        return not self._is_over

    def lowest_live(self, is_over: Callable[[datetime], bool]) -> LowerLease | None:
        """The lowest of those that are not over for certain. Raises ``Unavailable`` where one of them is unreadable."""
        for key in [key for key, (_, lease) in self.lower.items() if is_over(lease.ends_at)]:
            del self.lower[key]
        if not self.lower:
            return None
        lowest = min((lease for _, lease in self.lower.values()), key=lambda lease: lease.protocol)
        if lowest.protocol == _UNREADABLE:
            raise Unavailable("the protocol of a live lease cannot be read")
        return lowest

    def end(self) -> None:
        """The watch is over: whoever waits for it is told."""
        self._is_over = True
        self.opened.set()

    async def _take_next(self, watch: Watch) -> None:
        change = await watch.next()
        self._take(change.key, change.revision, change.record)
        self._taken_in = max(self._taken_in, change.revision)
        self._moved.set()

    async def _moved_on(self) -> None:
        """Return when something was taken in, or soon: a write that the watch hands to nobody moves it too."""
        self._moved.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.GATE_VIEW_PAUSE_S):
                await self._moved.wait()

    async def _take_shown(self, watch: Watch) -> None:
        """Take in everything that the watch has been shown: what it need not wait for."""
        while True:
            try:
                async with asyncio.timeout(0):
                    await self._take_next(watch)
            except TimeoutError:
                return

    def _take(self, key: str, revision: Revision, record: Record | None) -> None:
        """One write. Two of us may hand over at once, so the newer one stands whatever the order."""
        known = self.lower.get(key)
        if known is not None and known[0] >= revision:
            return
        lease = None if record is None else self._lower_lease(record)
        if lease is not None:
            self.lower[key] = (revision, lease)
        elif known is not None:
            del self.lower[key]

    def _lower_lease(self, record: Record) -> LowerLease | None:
        try:
            said = msgspec.json.decode(record.value, type=_Said)
        except (msgspec.MsgspecError, RecursionError):
            said = _Said(protocol=_UNREADABLE)
        if said.protocol >= self._protocol:
            return None
        if said.ttl_s and not can_be_ttl(said.ttl_s):
            said = _Said(protocol=_UNREADABLE)
        ttl_s = said.ttl_s or self._age_s or limits.MAX_DUTY_TTL_S
        return LowerLease(said.owner, said.protocol, record.written_at + timedelta(seconds=ttl_s))
