"""The hooks of the host of seats: establishing a seat, giving it back, and the edges in between (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.base.fence import Fence
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.coordination import Lease
from crewlet.events.types import AgentSpawned, AgentTerminated
from crewlet.inbox import NoRefusal, Refusal, RunTurn, SeatInbox, SeatInboxParts, Trigger, TurnJournal, TurnOutcome
from crewlet.node.company_parts import CompanySource
from crewlet.node.mailboxes import inbox_of
from crewlet.node.news import News
from crewlet.node.seat_admitted import SeatAdmitted
from crewlet.node.seat_holds import FRONT, SeatHolds
from crewlet.node.seat_steps import JournalTakeOver, NoTakeOver, Pauses, seat_steps
from crewlet.node.seat_tenure import SeatTenure
from crewlet.node.turn_runner import TurnRunner
from crewlet.queue import Batch, BatchHandler, EventQueue, Outcome
from crewlet.seats import ReleaseMode
from crewlet.tools import SeatTools, ToolHost

__all__ = ["SeatRuntime", "SeatRuntimeParts"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatRuntimeParts:
    """What seats are established from.

    ``inbox_parts`` makes a seat's inbox from its way to run a turn. ``may_start`` says whether a seat admits turns.
    ``release_wait_s`` is how long a release waits for what runs; ``None`` for as long as it takes.
    """

    queue: EventQueue
    tools: ToolHost
    runner: TurnRunner
    company: Callable[[], CompanySource]
    inbox_parts: Callable[[RunTurn], SeatInboxParts]
    holds: SeatHolds
    pauses: Pauses
    admitted: SeatAdmitted
    may_start: Callable[[str], int | None]
    release_wait_s: Callable[[], float | None]
    clock: Clock
    ids: Ids
    models: Refusal = field(default_factory=NoRefusal)
    journals: JournalTakeOver = field(default_factory=NoTakeOver)


class SeatRuntime:
    """The hooks of the host of seats. ``steps`` are those of establishing one, in their order."""

    def __init__(self, parts: SeatRuntimeParts) -> None:
        self._parts = parts
        self._tenures: dict[str, SeatTenure] = {}
        self._tasks = Tasks("seat_fronts")
        # The lease says who holds the seat.
        self._news = News(parts.queue.publish, parts.clock, parts.ids)
        self.steps = seat_steps(
            queue=parts.queue,
            tools=parts.tools,
            company=parts.company,
            holds=parts.holds,
            pauses=parts.pauses,
            models=parts.models,
            journal=parts.journals,
            handler=self._handler,
        )
        parts.holds.on_change(self._stir)

    async def close(self) -> None:
        """End what still runs before an inbox."""
        await self._tasks.close()

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        """Establish the seat, step by step, its inbox last (S-034).

        Raises ``CrewletError`` or ``OSError`` when a step fails; what was taken is undone by :meth:`on_release`.
        """
        tenure = self._tenures[handle] = SeatTenure(handle, lease)
        await tenure.establish(self.steps)
        await self._tell_spawned(tenure)

    def on_established(self, handle: str) -> None:
        """Let the mail through that came while the seat was being established; what comes before it goes first."""
        tenure = self._tenures[handle]
        tenure.was_established = True
        tenure.established.set()
        if len(tenure.front):
            self._tasks.start(f"front {handle}", self._work_front(tenure))
        self._parts.admitted.established(handle)

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        """Undo it, the inbox first: voluntarily once what runs has ended, fenced at once. Republishes nothing.

        A voluntary release waits for what runs only so long: then it is as good as fenced, since the grant ends with
        the lease, and with it what still runs (S-040).
        """
        tenure = self._tenures.get(handle)
        if tenure is None:
            return
        tenure.established.set()
        tenure.front.close()
        if not await self._quieten(tenure, mode):
            tenure.left_running = True
        await tenure.undo()
        del self._tenures[handle]
        self._parts.journals.forget(handle)
        if tenure.left_running:
            await self._hand_on(handle)
        self._parts.admitted.gone(handle)
        if tenure.is_told:
            await self._news.tell(AgentTerminated(agent_handle=handle, reason=str(mode)), source=handle)

    async def on_unproven(self, handle: str) -> None:
        """Stop fetching until ownership is proven again."""
        self._parts.admitted.unproven(handle)
        try:
            async with asyncio.timeout(limits.SEAT_QUIESCE_WAIT_S):
                await self._parts.queue.quiesce(inbox_of(handle))
        except TimeoutError:
            # Nothing is asked for any more, and what comes is given back; the broker may hear of it later. Whoever
            # waited longer over a silent link would keep the renewals from their next try.
            _log.debug("seat_quiesce_unheard", seat=handle)

    async def on_proven(self, handle: str) -> None:
        """Fetch again; without this edge a seat that deferred once would be owned, attached and deaf (S-052)."""
        self._stir(handle)
        self._parts.admitted.proven(handle)
        if not self._parts.pauses.withheld(handle):
            # Else each renew would cost its mail a delivery, until none is left; whoever withholds it lets it go on.
            await self._parts.queue.unquiesce(inbox_of(handle))

    async def _quieten(self, tenure: SeatTenure, mode: ReleaseMode) -> bool:
        """Wait for what runs, where that is due; whether nothing is left that a successor would wait for."""
        if mode is ReleaseMode.FENCED and tenure.was_established:
            # Its successor comes after a lapse, and frees by itself what is held here.
            return True
        voluntary = mode is ReleaseMode.VOLUNTARY
        # A seat that never admitted anything holds at most a delivery that is deferred at once.
        wait_s = self._parts.release_wait_s() if voluntary else limits.SEAT_UNADMITTED_WAIT_S
        queue, inbox = self._parts.queue, inbox_of(tenure.handle)
        await queue.quiesce(inbox)
        try:
            async with asyncio.timeout(wait_s):
                await queue.wait_idle(inbox)
                await tenure.front.wait_idle()
        except TimeoutError:
            _log.warning("seat_release_wait_over", seat=tenure.handle, waited_s=wait_s)
            return False
        return True

    async def _hand_on(self, handle: str) -> None:
        """Free what a handler that runs on still holds: its outcome is reported no more, its grant ends now."""
        try:
            await self._parts.queue.release_held(inbox_of(handle))
        except Unavailable as error:
            # The ack clock frees it, later.
            _log.warning("seat_mail_not_handed_on", seat=handle, error=str(error))

    async def _work_front(self, tenure: SeatTenure) -> None:
        handle, parts = tenure.handle, self._parts

        def may_begin() -> bool:
            is_held = {*parts.holds.of(handle)} - {FRONT} or parts.pauses.withheld(handle)
            return not is_held and parts.may_start(handle) is not None

        try:
            await tenure.front.work(handle, may_begin)
        finally:
            if self._tenures.get(handle) is tenure:
                # Else the hold went with the attachment, and one of this name may be the next tenure's.
                await parts.holds.lift(handle, FRONT)

    def _stir(self, handle: str) -> None:
        if tenure := self._tenures.get(handle):
            tenure.front.stir()

    def _handler(self, tenure: SeatTenure) -> BatchHandler:
        """The seat's inbox, behind a gate: a delivery that is there already must not be deferred to the next renew."""
        assert tenure.tools is not None, "the tool servers come before the inbox"
        journals, parts = self._parts.journals, self._parts.inbox_parts(self._turns_with(tenure.tools))
        inbox = SeatInbox(tenure.handle, parts, journals.of(tenure.handle))
        journals.opened(tenure.handle, inbox)

        async def handle_once_established(batch: Batch) -> Outcome:
            await tenure.established.wait()
            return await inbox.handle(batch)

        return handle_once_established

    def _turns_with(self, tools: SeatTools) -> RunTurn:
        async def run(trigger: Trigger, fence: Fence, journal: TurnJournal) -> TurnOutcome:
            return await self._parts.runner.run(trigger, fence, journal, tools)

        return run

    async def _tell_spawned(self, tenure: SeatTenure) -> None:
        seat = self._parts.company().organization.agent_seat_by_handle(tenure.handle)
        agent_id, role = ("", "") if seat is None else (seat.agent_id or "", seat.name)
        tenure.is_told = True
        spawned = AgentSpawned(agent_handle=tenure.handle, agent_id=agent_id, role=role, epoch=tenure.lease.epoch)
        await self._news.tell(spawned, source=tenure.handle)
