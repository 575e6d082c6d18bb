"""Which seats' mailboxes may exist, and since when a seat is missing: what a retirement runs on (S0, S1)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Conflict
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord, encode_record
from crewlet.coordination.records.stored import Stored, change_stored, list_stored, read_stored

__all__ = ["Mailboxes", "SeatMailbox", "marked", "registered", "stamped_absent", "taken_over", "unmarked"]


class SeatMailbox(SharedRecord, frozen=True, kw_only=True):
    """One seat's mailbox, which may exist. All times are the store's.

    ``absent_since``: no later than this a sweep saw the seat missing. ``retiring_by`` names the retirement that is
    deleting the mailbox, since ``retiring_since``; empty: none is.
    """

    handle: str
    registered_at: datetime
    absent_since: datetime | None = None
    retiring_by: str = ""
    retiring_since: datetime | None = None

    @property
    def is_retiring(self) -> bool:
        """Whether its subscriptions may be going just now: nobody creates them before this is over."""
        return self.retiring_by != ""


def registered(standing: SeatMailbox | None, handle: str, *, at: datetime) -> SeatMailbox:
    """The record of a seat that is in the company: no absence stands. One that is being retired is left as it is."""
    if standing is None:
        return SeatMailbox(handle=handle, registered_at=at)
    return standing if standing.is_retiring else replace(standing, absent_since=None)


def stamped_absent(mailbox: SeatMailbox, *, at: datetime) -> SeatMailbox:
    """The record of a seat that was seen missing; the first sight of it counts."""
    return mailbox if mailbox.absent_since is not None else replace(mailbox, absent_since=at)


def marked(mailbox: SeatMailbox, by: str, *, now: datetime) -> SeatMailbox | None:
    """The record with a retirement begun; ``None`` while the seat was not missing for long enough, or another's stands.

    A mark whose retirement died is another's until it is ``limits.MAILBOX_MARK_ABANDONED_S`` old.
    """
    if mailbox.absent_since is None or now < mailbox.absent_since + timedelta(seconds=limits.MAILBOX_GRACE_S):
        return None
    since = mailbox.retiring_since
    if since is not None and mailbox.retiring_by != by and now < _abandoned_at(since):
        return None
    return replace(mailbox, retiring_by=by, retiring_since=now)


def unmarked(mailbox: SeatMailbox) -> SeatMailbox:
    """The record with its retirement given up, to be begun again: the seat is as absent as it was."""
    return replace(mailbox, retiring_by="", retiring_since=None)


def taken_over(standing: SeatMailbox | None, seen: SeatMailbox, *, at: datetime) -> SeatMailbox:
    """The record of a seat that came back and waited for the retirement in ``seen`` long enough: it is present.

    Another retirement than that one is left as it is.
    """
    if standing is None:
        return registered(None, seen.handle, at=at)
    same = (standing.retiring_by, standing.retiring_since) == (seen.retiring_by, seen.retiring_since)
    return registered(unmarked(standing) if same else standing, seen.handle, at=at)


class Mailboxes:
    """The mailboxes of seats. A record stands until a retirement ends it, never by age.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. Unknown is never absent: a sweep
    that cannot read stamps nothing and retires nothing. A node that cannot register creates the mailbox all the same,
    and some sweep finds it.

    A node and a sweep write the same record: a node's verbs read it again after a lost race, a sweep's act on what it
    read alone and leave the rest to its next tick.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def register(self, handle: str) -> SeatMailbox:
        """The seat is in the company, and its mailbox may exist; returns what stands.

        Where that ``is_retiring``, nothing was written: create no subscription, and register again once it is over.
        """
        at = (await self._store.time()).earliest
        return await self._stands(handle, lambda standing: registered(standing, handle, at=at))

    async def take_over(self, seen: SeatMailbox) -> SeatMailbox:
        """The retirement in ``seen`` has had its time, and the seat is in the company; returns what stands.

        The retirement learns of it as its record changed. Where another one stands, as :meth:`register`.
        """
        at = (await self._store.time()).earliest
        return await self._stands(seen.handle, lambda standing: taken_over(standing, seen, at=at))

    async def get(self, handle: str) -> Stored[SeatMailbox] | None:
        """The record, or ``None`` where the mailbox is not registered."""
        return await read_stored(self._store, SeatMailbox, _key(handle))

    async def every(self) -> list[Stored[SeatMailbox]]:
        """Every registered mailbox."""
        return await list_stored(self._store, SeatMailbox, "seat.>")

    async def discover(self, handle: str) -> Stored[SeatMailbox] | None:
        """A mailbox that nobody registered, of a seat that is not in the company: missing from now on.

        ``None`` where it was registered meanwhile.
        """
        at = (await self._store.time()).latest
        record = SeatMailbox(handle=handle, registered_at=at, absent_since=at)
        try:
            written = await self._store.create(_key(handle), encode_record(record))
        except Conflict:
            return None
        return Stored(written.key, record, written.revision, written.written_at)

    async def stamp_absent(self, read: Stored[SeatMailbox]) -> Stored[SeatMailbox] | None:
        """The seat is seen missing; ``None`` where the record changed since it was read."""
        at = (await self._store.time()).latest
        return await self._over(read, stamped_absent(read.record, at=at))

    async def is_due(self, read: Stored[SeatMailbox]) -> bool:
        """Whether a retirement of it may begin now, by the store's clock: long enough missing, and no other at work."""
        return marked(read.record, "", now=(await self._store.time()).earliest) is not None

    async def is_abandoned(self, read: Stored[SeatMailbox]) -> bool:
        """Whether a retirement that began must have died since, by the store's clock."""
        since = read.record.retiring_since
        return since is not None and _abandoned_at(since) <= (await self._store.time()).earliest

    async def mark(self, read: Stored[SeatMailbox], *, by: str) -> Stored[SeatMailbox] | None:
        """The retirement ``by`` begins, alone; ``None`` where it may not, or the record changed since it was read.

        ``by`` is a name of this one retirement: asked again, it has the mark that it never heard of.
        """
        wanted = marked(read.record, by, now=(await self._store.time()).earliest)
        if wanted is None:
            return None
        mark = await self._over(read, wanted) or await self.get(read.record.handle)
        return None if mark is None or mark.record.retiring_by != by else mark

    async def unmark(self, mark: Stored[SeatMailbox]) -> Stored[SeatMailbox] | None:
        """The retirement of ``mark`` gives up for now; ``None`` where it was taken over."""
        return await self._over(mark, unmarked(mark.record))

    async def forget(self, mark: Stored[SeatMailbox]) -> bool:
        """The retirement of ``mark`` is done and its record gone; a repeat is harmless.

        False where it was taken over: a seat that came back may have created the inbox before the delete landed.
        """
        try:
            await self._store.delete(mark.key, expected=mark.revision)
        except Conflict:
            return False
        return True

    async def _stands(self, handle: str, step: Callable[[SeatMailbox | None], SeatMailbox]) -> SeatMailbox:
        stands = await change_stored(self._store, SeatMailbox, _key(handle), step)
        assert stands is not None, "no such step is refused"
        return stands.record

    async def _over(self, read: Stored[SeatMailbox], wanted: SeatMailbox) -> Stored[SeatMailbox] | None:
        if wanted == read.record:
            return read
        try:
            written = await self._store.update(read.key, encode_record(wanted), expected=read.revision)
        except Conflict:
            return None
        return Stored(read.key, wanted, written.revision, written.written_at)


def _abandoned_at(retiring_since: datetime) -> datetime:
    return retiring_since + timedelta(seconds=limits.MAILBOX_MARK_ABANDONED_S)


def _key(handle: str) -> str:
    return f"seat.{key_token(handle)}"
