"""Establishing a seat and giving it back: the steps, their order, and the consumer of its inbox last (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from crewlet import topics
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.fence import Fence
from crewlet.base.ids import Handle, Ids
from crewlet.base.trace import fresh_trace
from crewlet.coordination import Lease
from crewlet.events import Body, new_event
from crewlet.events.types import AgentSpawned, AgentTerminated
from crewlet.inbox import RunTurn, SeatInbox, SeatInboxParts, Trigger, TurnJournal, TurnOutcome
from crewlet.node.company_parts import CompanySource, seat_server_specs
from crewlet.node.mailboxes import inbox_of, reflect_of
from crewlet.node.turn_runner import TurnRunner
from crewlet.queue import Ack, Delivery, EventQueue, Outcome
from crewlet.seats import ReleaseMode
from crewlet.tools import SeatTools, ToolHost

__all__ = ["SeatRuntime", "SeatRuntimeParts"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatRuntimeParts:
    """What seats are established from. ``inbox_parts`` makes a seat's inbox from its way to run a turn."""

    queue: EventQueue
    tools: ToolHost
    runner: TurnRunner
    company: Callable[[], CompanySource]
    inbox_parts: Callable[[RunTurn], SeatInboxParts]
    clock: Clock
    ids: Ids


class SeatRuntime:
    """The hooks of the host of seats."""

    def __init__(self, parts: SeatRuntimeParts) -> None:
        self._parts = parts
        self._established: set[str] = set()
        self._admitting: dict[str, asyncio.Event] = {}

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        """Establish the seat: its tool servers, its reflections, then its inbox.

        After a lapse the mail that the dead holder had fetched is given back first; waiting out its ack clock would
        park the seat's work for half an hour. Raises ``CrewletError`` when a step fails; what was attached is undone
        by :meth:`on_release`.
        """
        source = self._parts.company()
        seat = source.organization.agent_seat_by_handle(handle)
        if seat is None:
            raise Unavailable(f"{handle} is no agent seat of the company any more")
        tools = await self._parts.tools.open_seat(Handle(handle), seat_server_specs(source, seat))
        queue, inbox, reflect = self._parts.queue, inbox_of(handle), reflect_of(handle)
        if lease.after_lapse:
            await queue.release_held(reflect)
            await queue.release_held(inbox)
        await queue.subscribe(reflect, _acknowledge)
        await queue.subscribe(inbox, self._handler(handle, tools))
        self._established.add(handle)
        spawned = AgentSpawned(agent_handle=handle, agent_id=seat.agent_id or "", role=seat.name, epoch=lease.epoch)
        await self._tell(handle, spawned)

    def on_established(self, handle: str) -> None:
        """Let the mail through that came while the seat was being established."""
        self._admitting[handle].set()

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        """Undo it: voluntarily after the running turn, or fenced at once, republishing nothing in either case."""
        queue, inbox, reflect = self._parts.queue, inbox_of(handle), reflect_of(handle)
        if handle in self._admitting:
            self._admitting.pop(handle).set()
        if mode is ReleaseMode.VOLUNTARY:
            await queue.quiesce(inbox)
            await queue.wait_idle(inbox)
        await queue.detach(inbox)
        await queue.detach(reflect)
        await self._parts.tools.close_seat(Handle(handle))
        if handle in self._established:
            self._established.discard(handle)
            await self._tell(handle, AgentTerminated(agent_handle=handle, reason=str(mode)))

    async def on_unproven(self, handle: str) -> None:
        """Stop fetching until ownership is proven again."""
        await self._parts.queue.quiesce(inbox_of(handle))

    async def on_proven(self, handle: str) -> None:
        """Fetch again; without this edge a seat that deferred once would be owned, attached and deaf."""
        await self._parts.queue.unquiesce(inbox_of(handle))

    async def give_back_stranded(self, handle: str) -> None:
        """Have mail that a broken link took along delivered again; called while the seat is held here."""
        await self._parts.queue.release_held(inbox_of(handle))

    def _handler(self, handle: str, tools: SeatTools) -> Callable[[Delivery], Awaitable[Outcome]]:
        """The seat's inbox, behind a gate: a delivery that is there already must not be deferred to the next renew."""
        inbox = SeatInbox(handle, self._parts.inbox_parts(self._turns_with(tools)))
        admitting = self._admitting[handle] = asyncio.Event()

        async def handle_once_established(delivery: Delivery) -> Outcome:
            await admitting.wait()
            return await inbox.handle(delivery)

        return handle_once_established

    def _turns_with(self, tools: SeatTools) -> RunTurn:
        async def run(trigger: Trigger, fence: Fence, journal: TurnJournal) -> TurnOutcome:
            return await self._parts.runner.run(trigger, fence, journal, tools)

        return run

    async def _tell(self, handle: str, body: Body) -> None:
        event = new_event(
            body, trace=fresh_trace(self._parts.ids), now=self._parts.clock.now(), ids=self._parts.ids, source=handle
        )
        try:
            await self._parts.queue.publish(topics.event_topic(event.type), event)
        except CrewletError as error:
            # Live news only: the lease says who holds the seat.
            _log.warning("seat_news_lost", seat=handle, type=event.type, error=str(error))


async def _acknowledge(delivery: Delivery) -> Outcome:  # noqa: ARG001 - nothing reflects yet
    await asyncio.sleep(0)
    return Ack()
