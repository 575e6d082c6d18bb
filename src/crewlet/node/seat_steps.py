"""The steps by which this build establishes a seat, in the order that is the promise: the inbox last (S-034)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from crewlet.base.errors import Unavailable
from crewlet.base.ids import Handle
from crewlet.coordination import SeatPause
from crewlet.inbox import Refusal, SeatInbox, SeatJournal, partition_of
from crewlet.node.company_parts import CompanySource, seat_server_specs
from crewlet.node.inbox_front import FrontWork
from crewlet.node.seat_holds import FRONT, PAUSED, SeatHolds
from crewlet.node.seat_tenure import NoStep, SeatStep, SeatTenure
from crewlet.queue import Ack, BatchHandler, BatchOptions, Delivery, EventQueue, Outcome, inbox_of, reflect_of
from crewlet.tools import ToolHost

__all__ = ["JournalTakeOver", "NoTakeOver", "Pauses", "seat_steps"]


class JournalTakeOver(Protocol):
    """Takes over what the seat's predecessor left half done, before a delivery of the seat can arrive."""

    async def take_over(self, handle: str, epoch: int, put_first: Callable[[FrontWork], None]) -> None:
        """From here on the predecessor can write nothing more; a turn that is to go on is handed to ``put_first``.

        It then runs before any mail, once the seat admits turns and no hold but its own stands on the inbox. Raises
        ``CrewletError`` where the seat cannot be taken over: its lease is given back.
        """
        ...

    def of(self, handle: str) -> SeatJournal | None:
        """What turns of the seat are written down in from now on, if anything."""
        ...

    def opened(self, handle: str, inbox: SeatInbox) -> None:
        """The seat's inbox, which goes on with what was left; before the first such work begins."""
        ...

    def forget(self, handle: str) -> None:
        """The seat is no longer this node's."""
        ...


class NoTakeOver:
    """Nothing is taken over: turns leave no journal."""

    async def take_over(self, handle: str, epoch: int, put_first: Callable[[FrontWork], None]) -> None:
        """Nothing."""

    def of(self, handle: str) -> SeatJournal | None:
        """Nothing."""
        return None

    def opened(self, handle: str, inbox: SeatInbox) -> None:
        """Nothing."""

    def forget(self, handle: str) -> None:
        """Nothing."""


class Pauses(Protocol):
    """Which seats a person paused."""

    def paused(self, handle: str) -> SeatPause | None:
        """The seat's pause, if any. Raises ``Unavailable`` while nothing is known."""
        ...

    def withheld(self, handle: str) -> str:
        """Why no turn of the seat may start for a pause's sake; empty where none stands."""
        ...


class _ToolServers(NoStep):
    """The seat's own children, first: a turn must not meet an empty surface. They die with the lease (S-036)."""

    def __init__(self, tools: ToolHost, company: Callable[[], CompanySource]) -> None:
        super().__init__("tool_servers")
        self._tools = tools
        self._company = company

    async def take(self, tenure: SeatTenure) -> None:
        """Start them."""
        source = self._company()
        seat = source.organization.agent_seat_by_handle(tenure.handle)
        if seat is None:
            raise Unavailable(f"{tenure.handle} is no agent seat of the company any more")
        tenure.tools = await self._tools.open_seat(Handle(tenure.handle), seat_server_specs(source, seat))

    async def give_back(self, tenure: SeatTenure) -> None:
        """End them."""
        await self._tools.close_seat(Handle(tenure.handle))


class _Reflections(NoStep):
    """The seat's finished turns, to be reflected on by whoever holds it."""

    def __init__(self, queue: EventQueue) -> None:
        super().__init__("reflection")
        self._queue = queue

    async def take(self, tenure: SeatTenure) -> None:
        """Attach."""
        if tenure.lease.after_lapse:
            await self._queue.release_held(reflect_of(tenure.handle))
        await self._queue.subscribe(reflect_of(tenure.handle), _acknowledge)

    async def give_back(self, tenure: SeatTenure) -> None:
        """Detach."""
        await self._queue.detach(reflect_of(tenure.handle))


class _Holds(NoStep):
    """What keeps the inbox from being read, before there is anything to keep: a hold after the attach is late (S-039).

    A seat of which nobody knows whether it is paused is attached all the same, and its deliveries are deferred.
    """

    def __init__(self, queue: EventQueue, holds: SeatHolds, pauses: Pauses, models: Refusal) -> None:
        super().__init__("holds")
        self._queue = queue
        self._holds = holds
        self._pauses = pauses
        self._models = models

    async def take(self, tenure: SeatTenure) -> None:
        """Take the holds that stand."""
        # Open before the look: what changes from here on is told, and reaches the seat.
        self._holds.open(tenure.handle)
        if self._is_paused(tenure.handle):
            await self._holds.hold(tenure.handle, PAUSED)
        else:
            await self._holds.lift(tenure.handle, PAUSED)
        # It takes its own hold where it refuses.
        await self._models.refuses(tenure.handle)

    async def give_back(self, tenure: SeatTenure) -> None:
        """Forget them; with the attachment they are gone, and where none was made they are dropped."""
        self._holds.forget(tenure.handle)
        await self._queue.detach(inbox_of(tenure.handle))

    def _is_paused(self, handle: str) -> bool:
        try:
            return self._pauses.paused(handle) is not None
        except Unavailable:
            return False


class _Journal(NoStep):
    """What the predecessor left half done; behind the holds, under which it goes on."""

    def __init__(self, journal: JournalTakeOver) -> None:
        super().__init__("journal")
        self._journal = journal

    async def take(self, tenure: SeatTenure) -> None:
        """Take it over."""
        await self._journal.take_over(tenure.handle, tenure.lease.epoch, tenure.front.put)


class _Inbox(NoStep):
    """The consumer of the inbox: with it the seat works."""

    def __init__(
        self,
        queue: EventQueue,
        holds: SeatHolds,
        handler: Callable[[SeatTenure], BatchHandler],
        company: Callable[[], CompanySource],
    ) -> None:
        super().__init__("inbox")
        self._queue = queue
        self._holds = holds
        self._handler = handler
        self._company = company

    async def take(self, tenure: SeatTenure) -> None:
        """Attach; what a dead holder had fetched comes back first, or it would wait for half an hour."""
        inbox = inbox_of(tenure.handle)
        if tenure.lease.after_lapse:
            await self._queue.release_held(inbox)
        if len(tenure.front):
            await self._holds.hold(tenure.handle, FRONT)
        handler = self._handler(tenure)
        await self._queue.subscribe_batch(inbox, handler, partition=partition_of, options=self._gathering)

    def _gathering(self) -> BatchOptions:
        """As the company in force has it, asked before each haul."""
        said = self._company().organization.notifications
        return BatchOptions(linger_s=said.gather_s, max_events=said.gather_max)

    async def give_back(self, tenure: SeatTenure) -> None:
        """Detach; nothing is published anew, since the mail keeps its identity where it is (S-043)."""
        await self._queue.detach(inbox_of(tenure.handle))


def seat_steps(
    *,
    queue: EventQueue,
    tools: ToolHost,
    company: Callable[[], CompanySource],
    holds: SeatHolds,
    pauses: Pauses,
    models: Refusal,
    journal: JournalTakeOver,
    handler: Callable[[SeatTenure], BatchHandler],
) -> tuple[SeatStep, ...]:
    """All of them, in order. A seat is given back in the opposite one: its mail first, its children last."""
    return (
        _ToolServers(tools, company),
        NoStep("memory"),
        _Reflections(queue),
        NoStep("sandbox"),
        _Holds(queue, holds, pauses, models),
        _Journal(journal),
        _Inbox(queue, holds, handler, company),
    )


async def _acknowledge(delivery: Delivery) -> Outcome:  # noqa: ARG001 - nothing reflects yet
    await asyncio.sleep(0)
    return Ack()
