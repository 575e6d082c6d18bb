"""The end of one removed seat's mailbox: under the seat's own lease, marked before anything goes (S1)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, StartRefused, Unavailable
from crewlet.base.fence import Fence
from crewlet.base.ids import Ids
from crewlet.coordination import (
    ClaimRefused,
    Lease,
    Leases,
    Mailboxes,
    RefusalRule,
    SandboxRun,
    SandboxRuns,
    SeatMailbox,
    Stored,
    seat_resource,
)
from crewlet.duties.duty import DutyFence
from crewlet.queue import EventQueue, Log, mailboxes_of

__all__ = ["MailboxRetirement", "RetirementParts", "RunEnder", "say_held"]

_log = structlog.get_logger(__name__)

_SeatRecord = Stored[SeatMailbox]


class RunEnder(Protocol):
    """What can end a detached run of a seat that is gone."""

    async def end(self, run: SandboxRun) -> None:
        """The run's box is reclaimed, and its loss announced with the reason ``seat_removed``; repeats are harmless.

        Raises ``CrewletError`` where the box cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementParts:
    """What a retirement acts on. ``ttl_s`` is the lease TTL in force; ``ender`` is ``None`` where no box is known."""

    leases: Leases
    mailboxes: Mailboxes
    runs: SandboxRuns
    queue: EventQueue
    log: Log
    clock: Clock
    ids: Ids
    owner: str
    node_id: str
    ttl_s: float
    ender: RunEnder | None = None


class MailboxRetirement:
    """Retires mailboxes, one at a time.

    It acts for half a lease TTL at most, and never longer than its own bound: so the last delete lands while the claim
    still keeps every node from attaching the seat.
    """

    def __init__(self, parts: RetirementParts) -> None:
        self._parts = parts
        self._lasts_s = min(limits.MAILBOX_RETIREMENT_MAX_S, parts.ttl_s / 2)

    async def retire(self, due: _SeatRecord) -> None:
        """The mailbox and its record are gone, or stand as they did and a later tick tries again.

        Raises ``CrewletError`` where it could not be done here; a seat that somebody holds is no error.
        """
        handle = due.record.handle
        if self._parts.ender is None and await self._parts.runs.of_seat(handle):
            raise CrewletError(f"{handle}: it has detached runs, and this node cannot reach a box to end them")
        asked_s = self._parts.clock.elapsed_s()
        answer = await self._parts.leases.claim(
            seat_resource(handle),
            owner=f"{self._parts.owner}:retirement",
            ttl_s=self._parts.ttl_s,
            preferred=self._parts.node_id,
        )
        if isinstance(answer, ClaimRefused):
            say_held(handle, answer.rule, holder=answer.holder)
            return
        fence = DutyFence(
            self._parts.clock,
            name=f"retirement of {handle}",
            epoch=answer.epoch,
            until_s=asked_s + self._lasts_s,
        )
        try:
            await self._retire_claimed(due, answer, fence)
        finally:
            await self._give_back(answer)

    async def _retire_claimed(self, due: _SeatRecord, lease: Lease, fence: Fence) -> None:
        handle = due.record.handle
        if due.record.is_retiring:
            _log.warning("seat_mailbox_retirement_resumed", seat=handle, since=str(due.record.retiring_since))
        mark = await self._parts.mailboxes.mark(due, by=f"{self._parts.owner}:{self._parts.ids.hex(8)}")
        if mark is None:
            _log.info("seat_mailbox_retirement_left", seat=handle, reason="record changed")
            return
        is_done = False
        try:
            async with asyncio.timeout(self._lasts_s):
                await self._end_runs(handle, lease, fence)
                await self._delete(handle, fence)
                fence.check()
                is_done = await self._forgotten(mark)
        except TimeoutError as error:
            raise Unavailable(f"{handle}: its retirement was not done within {self._lasts_s:g} s") from error
        finally:
            if not is_done:
                await self._give_up(mark)
        _log.info("seat_mailbox_retired", seat=handle, absent_since=str(due.record.absent_since))

    async def _end_runs(self, handle: str, lease: Lease, fence: Fence) -> None:
        """Nothing could reach a run any more once the mailboxes are gone, so the runs go first."""
        for run in await self._parts.runs.of_seat(handle):
            fence.check()
            if self._parts.ender is None:
                raise CrewletError(f"{handle}: a detached run began, and this node cannot reach a box to end it")
            await self._parts.ender.end(run)
            await self._parts.runs.settle(handle, run.turn_id, epoch=lease.epoch)
            _log.info("sandbox_run_ended", seat=handle, turn_id=run.turn_id, reason="seat_removed")

    async def _delete(self, handle: str, fence: Fence) -> None:
        for subscription in mailboxes_of(handle):
            fence.check()
            await self._parts.queue.delete_subscription(subscription)
        fence.check()
        # A seat that is added again under this handle is another one: no turn of its namesake's is to go on in it.
        await self._parts.log.purge(handle)

    async def _forgotten(self, mark: _SeatRecord) -> bool:
        if await self._parts.mailboxes.forget(mark):
            return True
        raise Unavailable(f"{mark.record.handle}: the record of its mailbox changed while it was retired")

    async def _give_up(self, mark: _SeatRecord) -> None:
        """Take the mark away; where a node took it over meanwhile, its inbox may have gone with our last delete."""
        handle = mark.record.handle
        try:
            async with asyncio.timeout(limits.MAILBOX_RETIREMENT_UNDONE_MAX_S):
                if await self._parts.mailboxes.unmark(mark) is not None:
                    _log.warning("seat_mailbox_retirement_unmarked", seat=handle)
                    return
                standing = await self._parts.mailboxes.get(handle)
                if standing is not None and not standing.record.is_retiring:
                    await self._parts.queue.ensure_subscriptions(mailboxes_of(handle))
                    _log.warning("seat_mailbox_restored", seat=handle)
        except (Unavailable, StartRefused, TimeoutError) as error:
            # The mark stands: a sweep resumes it once it is old, and makes what is missing of a seat that is back.
            _log.warning("seat_mailbox_mark_left", seat=handle, error=str(error) or "no answer in time")

    async def _give_back(self, lease: Lease) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.MAILBOX_RETIREMENT_UNDONE_MAX_S):
                try:
                    await self._parts.leases.release(lease)
                except Unavailable as error:
                    _log.warning("seat_give_back_unknown", resource=lease.resource, error=str(error))


def say_held(handle: str, refused: RefusalRule, *, holder: str) -> None:
    """The line that sends an operator to the node in the way: the seat's holder, or one at a lower protocol."""
    _log.warning("seat_mailbox_retirement_held", seat=handle, refused=str(refused), holder=holder)
