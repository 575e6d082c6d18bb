"""The mailboxes behind every agent seat of the company; they are recorded, then made, before any seat runs (E-053)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import each_at_once
from crewlet.coordination import Mailboxes, SeatMailbox
from crewlet.notify import inbound_subscription
from crewlet.queue import EventQueue, control_of, inbox_of, mailboxes_of, reflect_of

__all__ = ["control_of", "ensure_mailboxes", "inbox_of", "reflect_of", "say_present"]

_log = structlog.get_logger(__name__)


async def ensure_mailboxes(queue: EventQueue, registry: Mailboxes, handles: Iterable[str]) -> None:
    """Record, then create what is missing for the given seats, and the work queue that routes to them. Idempotent.

    Every node does it for the whole company, not for its own share: the node that serves a seat may not be the one
    that made its mailbox, and a publish that no subscription covers is gone.

    What cannot be recorded is created all the same: a mailbox that nobody knows of is found later, lost mail is not. A
    mailbox that is being retired is waited for, and taken over where that takes too long. Raises ``Unavailable`` where
    the queue cannot be reached.
    """
    wanted = tuple(dict.fromkeys(handles))
    found = await _registered(registry, wanted)
    await queue.ensure_subscriptions(
        [inbound_subscription(), *(mailbox for handle in found.ready for mailbox in mailboxes_of(handle))]
    )

    async def make_once_over(retiring: SeatMailbox) -> None:
        await _until_over(registry, retiring)
        await queue.ensure_subscriptions(mailboxes_of(retiring.handle))

    await each_at_once(found.retiring, make_once_over, at_once=limits.MAILBOXES_CREATED_AT_ONCE)


async def say_present(registry: Mailboxes, handles: Iterable[str]) -> None:
    """Record what a sweep elsewhere took for missing, and this node has. Creates nothing. Raises ``Unavailable``.

    While nodes are given their documents by hand, one with an older document must not be the one who ends a mailbox.
    """
    wanted = frozenset(handles)
    for each in await registry.every():
        if each.record.handle in wanted and each.record.absent_since is not None:
            await registry.register(each.record.handle)
            _log.warning(
                "seat_mailbox_contradicted", seat=each.record.handle, absent_since=str(each.record.absent_since)
            )


@dataclass(slots=True)
class _Found:
    """Which mailboxes may be made at once, and which retirements stand in the way of others."""

    ready: list[str] = field(default_factory=list[str])
    retiring: list[SeatMailbox] = field(default_factory=list[SeatMailbox])


async def _registered(registry: Mailboxes, handles: Collection[str]) -> _Found:
    """Record every seat. One that stands as present needs no write: a day passes before it could be retired."""
    stands: dict[str, SeatMailbox] = {}

    async def register(handle: str) -> None:
        stands[handle] = await registry.register(handle)

    try:
        async with asyncio.timeout(limits.MAILBOXES_REGISTER_MAX_S):
            known = {each.record.handle: each.record for each in await registry.every()}
            present = {handle for handle in handles if handle in known and _is_present(known[handle])}
            stands.update((handle, known[handle]) for handle in present)
            missing = [handle for handle in handles if handle not in present]
            await each_at_once(missing, register, at_once=limits.MAILBOXES_CREATED_AT_ONCE)
            for handle in missing:
                if handle in known and not stands[handle].is_retiring:
                    _log.info("seat_mailbox_returned", seat=handle)
    except (Unavailable, TimeoutError) as error:
        _say_unregistered([handle for handle in handles if handle not in stands], str(error) or "no answer in time")
    retiring = [record for record in stands.values() if record.is_retiring]
    waited_for = {record.handle for record in retiring}
    return _Found([handle for handle in handles if handle not in waited_for], retiring)


async def _until_over(registry: Mailboxes, seen: SeatMailbox) -> None:
    """Return once the retirement is over and the seat is recorded; after twice its bound it is over for certain."""
    handle, stands = seen.handle, seen
    try:
        async with asyncio.timeout(limits.MAILBOX_RETIREMENT_WAIT_S):
            while stands.is_retiring:
                await asyncio.sleep(limits.MAILBOX_RETIREMENT_LOOK_S)
                stands = await _looked_again(registry, stands)
            return
    except TimeoutError:
        pass
    try:
        async with asyncio.timeout(limits.MAILBOXES_REGISTER_MAX_S):
            stands = await registry.take_over(stands)
    except (Unavailable, TimeoutError) as error:
        _say_unregistered([handle], str(error) or "no answer in time")
    else:
        _log.warning("seat_mailbox_retirement_taken_over", seat=handle, over=not stands.is_retiring)


async def _looked_again(registry: Mailboxes, stands: SeatMailbox) -> SeatMailbox:
    try:
        return await registry.register(stands.handle)
    except Unavailable:
        # Not over, as far as is known; the wait for it has its bound.
        return stands


def _is_present(record: SeatMailbox) -> bool:
    return record.absent_since is None and not record.is_retiring


def _say_unregistered(handles: Collection[str], error: str) -> None:
    for handle in list(handles)[: limits.SEATS_SHOWN_MAX]:
        _log.warning("seat_mailbox_unregistered", seat=handle, seats_in_all=len(handles), error=error)
