"""One claim on its way to a tenure: three writes, and the way back from each of them (S-010, S-011)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.base.tasks import Tasks, together
from crewlet.coordination.contract import Record, RecordStore
from crewlet.coordination.lease_names import lease_key
from crewlet.coordination.lease_record import StoredLease, Wanted, claiming, committed, stored_lease
from crewlet.coordination.leases import ClaimRefused, Lease
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.records.epochs import Epochs, Minted

__all__ = ["Judge", "LeaseClaim"]

_log = structlog.get_logger(__name__)

_T = TypeVar("_T")
_U = TypeVar("_U")

Judge = Callable[[], Coroutine[Any, Any, ClaimRefused | None]]
"""Whether the protocol gate refuses this claim, now."""


class LeaseClaim:
    """One claim's writes. ``began_s`` is the elapsed time at which its caller began to wait for it."""

    def __init__(
        self,
        wanted: Wanted,
        *,
        store: RecordStore,
        epochs: Epochs,
        judge: Judge | None,
        clock: Clock,
        began_s: float,
        tasks: Tasks,
    ) -> None:
        self._wanted = wanted
        self._store = store
        self._epochs = epochs
        self._judge = judge
        self._clock = clock
        self._began_s = began_s
        self._tasks = tasks
        self._key = lease_key(wanted.resource)
        self._is_minted = False
        self._is_given_up = False

    async def take(self, over: Record | None) -> Lease | ClaimRefused | None:
        """Make it a tenure, over the lapsed record ``over``; ``None`` where somebody wrote first.

        Whatever else ends it, what it wrote is given back. Raises ``Unavailable``.
        """
        try:
            began = await self._begin(over)
            return None if began is None else await self._finish(began)
        except Unavailable:
            tenure = await self._given_back()
            if tenure is None:
                raise
            # The answer to the last write was lost: it did land, and the tenure is this claim's.
            return await self._in_time(tenure)
        except BaseException:
            await self._given_back()
            raise

    async def _begin(self, over: Record | None) -> StoredLease | None:
        value = encode_record(claiming(self._wanted))
        try:
            if over is None:
                return stored_lease(await self._store.create(self._key, value))
            return stored_lease(await self._store.update(self._key, value, expected=over.revision))
        except Conflict:
            return None

    async def _finish(self, began: StoredLease) -> Lease | ClaimRefused:
        refused, minted = await self._counted()
        if refused is not None:
            await self._given_back()
            return refused
        said = committed(began, epoch=minted.epoch, after_lapse=minted.after_lapse)
        try:
            record = await self._store.update(self._key, encode_record(said), expected=began.record.revision)
        except Conflict as error:
            raise Unavailable(f"{self._wanted.resource!r}: the claim lapsed before it was a tenure") from error
        return await self._in_time(StoredLease(record, said))

    async def _counted(self) -> tuple[ClaimRefused | None, Minted]:
        if self._judge is None:
            return None, await self._mint()
        return await _both(self._judge(), self._mint())

    async def _mint(self) -> Minted:
        wanted = self._wanted
        minted = await self._epochs.mint(wanted.resource, claim=wanted.claim, preferred=wanted.preferred)
        self._is_minted = True
        return minted

    async def _in_time(self, tenure: StoredLease) -> Lease:
        """The lease, unless the caller waited for it as long as it was to last: such a one is handed out dead."""
        took_s = self._clock.elapsed_s() - self._began_s
        if took_s < self._wanted.ttl_s:
            return tenure.as_lease()
        await self._shielded(lambda: self._remove(tenure.record))
        raise Unavailable(f"{self._wanted.resource!r}: the claim took {took_s:.1f} s of its {self._wanted.ttl_s:g} s")

    async def _given_back(self) -> StoredLease | None:
        """Take back what this claim wrote; returns the tenure instead where it is one already."""
        return await self._shielded(self._take_back)

    async def _shielded(self, work: Callable[[], Awaitable[_T]]) -> _T | None:
        # In a task of its own, and waited for: a caller that gives up must not leave the resource dark for a TTL.
        return await asyncio.shield(self._tasks.start("give-back", self._bounded(work)))

    async def _bounded(self, work: Callable[[], Awaitable[_T]]) -> _T | None:
        try:
            async with asyncio.timeout(limits.LEASE_GIVE_BACK_S):
                return await work()
        except (TimeoutError, Conflict, Unavailable) as error:
            _log.warning("lease_give_back_unknown", resource=self._wanted.resource, error=str(error) or "no answer")
            return None

    async def _take_back(self) -> StoredLease | None:
        while True:
            try:
                found = await self._store.get(self._key)
                stored = None if found is None else stored_lease(found)
                if stored is not None and stored.said.claim == self._wanted.claim:
                    if stored.said.epoch:
                        return None if self._is_given_up else stored
                    await self._remove(stored.record)
                elif not self._is_given_up:
                    await self._mark_gap()
            except Conflict:
                continue
            except Unavailable as error:
                _log.debug("lease_give_back_waits", resource=self._wanted.resource, error=str(error))
                await asyncio.sleep(limits.LEASE_GIVE_BACK_PAUSE_S)
            else:
                return None

    async def _remove(self, ours: Record) -> None:
        # Where an epoch was minted the counter hears of it first: while the record stands nobody else can mint, and
        # make an unknown of our gap. Where the counter is the trouble it must not keep the record standing.
        if self._is_minted and not self._is_given_up:
            await self._mark_gap()
        await self._store.delete(self._key, expected=ours.revision)
        if not self._is_given_up:
            await self._mark_gap()

    async def _mark_gap(self) -> None:
        """Best effort: unmarked, the next tenure only counts as one after a lapse."""
        # From here on nobody acts on this claim, even if its last write turns out to have landed.
        self._is_given_up = True
        try:
            async with asyncio.timeout(limits.LEASE_MARK_GAP_S):
                await self._epochs.mark_gap(self._wanted.resource, claim=self._wanted.claim)
        except (TimeoutError, Unavailable) as error:
            _log.debug("lease_gap_unmarked", resource=self._wanted.resource, error=str(error) or "no answer")


async def _both(first: Coroutine[Any, Any, _T], second: Coroutine[Any, Any, _U]) -> tuple[_T, _U]:
    """Both results; the first failure ends the other and is raised as it is."""
    results: list[Any] = [None, None]

    async def one() -> None:
        results[0] = await first

    async def other() -> None:
        results[1] = await second

    try:
        await together(one(), other())
    finally:
        # Whoever is called off before it has begun never comes to await its half.
        first.close()
        second.close()
    return results[0], results[1]
