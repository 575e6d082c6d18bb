"""One tick over the registered mailboxes: who came back, who is missing, and whose mailbox ends (S1)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum, auto

import structlog

from crewlet import topics
from crewlet.base import limits
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.fence import Fence
from crewlet.coordination import Lease, RefusalRule, SeatMailbox, Stored, seat_resource
from crewlet.duties.jobs import JobsFailed
from crewlet.duties.mailbox_retirement import MailboxRetirement, RetirementParts, say_held
from crewlet.duties.roster import Roster
from crewlet.queue import mailboxes_of, owner_of_mailbox

__all__ = ["MailboxSweep", "Step", "step_of"]

_log = structlog.get_logger(__name__)


class Step(Enum):
    """What one tick does about one record."""

    NOTHING = auto()
    RETURNED = auto()
    STAMP = auto()
    TAKE_OVER = auto()
    CONSIDER = auto()


def step_of(record: SeatMailbox, *, in_company: bool) -> Step:
    """What is to be done, before any clock is asked. Pure."""
    if in_company and record.is_retiring:
        return Step.TAKE_OVER
    if in_company:
        return Step.NOTHING if record.absent_since is None else Step.RETURNED
    return Step.STAMP if record.absent_since is None else Step.CONSIDER


class MailboxSweep:
    """Judges every registered mailbox, and every one that the broker alone knows of.

    Unknown is never absent: where the roster, the registry or the seats' leases cannot be read, nothing is changed.
    """

    def __init__(self, roster: Roster, parts: RetirementParts) -> None:
        self._roster = roster
        self._parts = parts
        self._mailboxes = parts.mailboxes
        self._retirement = MailboxRetirement(parts)

    async def run(self, fence: Fence) -> None:
        """One tick. Raises ``CrewletError`` where it could not judge, or could not do all that it judged."""
        in_company = await self._roster.agent_handles()
        records = {each.record.handle: each for each in await self._mailboxes.every()}
        holders = {lease.resource: lease for lease in await self._parts.leases.held("seat")}
        await self._meet_the_broker(in_company, records, fence)
        failed: list[tuple[str, str]] = []
        for read in records.values():
            fence.check()
            try:
                await self._judge(read, in_company, holders)
            except CrewletError as error:
                # One that never succeeds must not keep the others from their turn.
                failed.append((read.record.handle, str(error)))
        if failed:
            raise JobsFailed(failed)

    async def _judge(self, read: Stored[SeatMailbox], in_company: frozenset[str], holders: Mapping[str, Lease]) -> None:
        handle = read.record.handle
        match step_of(read.record, in_company=handle in in_company):
            case Step.NOTHING:
                pass
            case Step.RETURNED:
                await self._mailboxes.register(handle)
                _log.info("seat_mailbox_returned", seat=handle)
            case Step.TAKE_OVER:
                await self._take_over(read)
            case Step.STAMP:
                await self._stamp(read)
            case Step.CONSIDER:
                await self._consider(read, holders)

    async def _stamp(self, read: Stored[SeatMailbox]) -> None:
        stamped = await self._mailboxes.stamp_absent(read)
        if stamped is not None:
            _say_absent("seat_mailbox_absent", stamped.record)

    async def _take_over(self, read: Stored[SeatMailbox]) -> None:
        """A seat is back whose retirement died: the node that waits for it may have died as well."""
        if await self._mailboxes.is_abandoned(read):
            await self._mailboxes.take_over(read.record)
            await self._parts.queue.ensure_subscriptions(mailboxes_of(read.record.handle))
            _log.warning("seat_mailbox_retirement_taken_over", seat=read.record.handle)

    async def _consider(self, read: Stored[SeatMailbox], holders: Mapping[str, Lease]) -> None:
        handle = read.record.handle
        if not await self._mailboxes.is_due(read):
            return
        if (holder := holders.get(seat_resource(handle))) is not None:
            say_held(handle, RefusalRule.HELD, holder=holder.owner)
            return
        # Asked again: the retirements before this one took their time, and what is deleted does not come back.
        if handle in await self._roster.agent_handles():
            return
        await self._retirement.retire(read)

    async def _meet_the_broker(
        self, in_company: frozenset[str], records: dict[str, Stored[SeatMailbox]], fence: Fence
    ) -> None:
        """Register what only the broker, or only the company, knows of. A listing that fails postpones this alone."""
        for handle in sorted(in_company - records.keys()):
            fence.check()
            await self._mailboxes.register(handle)
        try:
            listed = await self._parts.queue.list_subscriptions(topics.stream_subjects(topics.STREAM_AGENT))
        except Unavailable as error:
            _log.warning("seat_mailbox_listing_failed", error=str(error))
            return
        found = {handle for each in listed if (handle := owner_of_mailbox(each)) is not None}
        for handle in sorted(found - in_company - records.keys()):
            fence.check()
            discovered = await self._mailboxes.discover(handle)
            if discovered is not None:
                _say_absent("seat_mailbox_discovered", discovered.record)
        there = frozenset(listed)
        for handle in sorted(in_company):
            fence.check()
            await self._make_missing(handle, there, records.get(handle))

    async def _make_missing(self, handle: str, there: frozenset[object], read: Stored[SeatMailbox] | None) -> None:
        """A seat of the company without its mailbox loses what is sent to it."""
        missing = [each for each in mailboxes_of(handle) if each not in there]
        if missing and not (read is not None and read.record.is_retiring):
            _log.warning("seat_mailbox_made_again", seat=handle, topics=[each.topic for each in missing])
            await self._parts.queue.ensure_subscriptions(missing)


def _say_absent(event: str, record: SeatMailbox) -> None:
    assert record.absent_since is not None
    retired_at = record.absent_since + timedelta(seconds=limits.MAILBOX_GRACE_S)
    _log.info(event, seat=record.handle, retired_at=retired_at.isoformat())
