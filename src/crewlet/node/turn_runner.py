"""Runs a seat's turn with the company current at its start, and hands its answer to whoever is owed one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from crewlet.a2a import A2aService, Answer
from crewlet.base.errors import Unavailable
from crewlet.base.fence import Fence
from crewlet.inbox import Decision, RecordedCharge, Trigger, TurnJournal, TurnOutcome
from crewlet.llm import Models
from crewlet.node.colleagues import CompanyLines, company_brief, seat_brief, worker_briefs
from crewlet.node.seat_onboarding import SeatOnboardings
from crewlet.node.steering import Steering
from crewlet.node.turn_meter import TurnMeters
from crewlet.org import Organization, Phase
from crewlet.tools import SeatTools
from crewlet.tracing import under
from crewlet.turns import TurnEngine, TurnSetup

__all__ = ["CompanyEpoch", "TurnRunner"]


@dataclass(frozen=True, slots=True, eq=False)
class CompanyEpoch:
    """A company and what was built for it; a turn pins one at its start and reads only that.

    ``skipped`` are the entries of its models that are left out for want of a key, ``revision`` is what its document
    is called.
    """

    organization: Organization
    models: Models
    skipped: frozenset[str]
    engine: TurnEngine
    revision: str = ""
    _lines: CompanyLines = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lines", CompanyLines(self.organization))

    def setup(self, handle: str, tools: SeatTools) -> TurnSetup | None:
        """What a turn of the seat works with, or ``None`` where the company has no such agent seat."""
        seat = self.organization.agent_seat_by_handle(handle)
        if seat is None:
            return None
        chain = self.organization.model_chain
        return TurnSetup(
            seat=seat_brief(self.organization, seat, self._lines),
            company=company_brief(self.organization),
            executor=self.models.for_chain(chain(seat, Phase.EXECUTE, skipped=self.skipped)),
            reviewer=self.models.for_chain(chain(seat, Phase.REVIEW, skipped=self.skipped)),
            judge=self.models.for_chain(chain(seat, Phase.JUDGE, skipped=self.skipped)),
            onboarder=self.models.for_chain(chain(seat, Phase.ONBOARDING, skipped=self.skipped)),
            subagent=self.models.for_chain(chain(seat, Phase.SUBAGENT, skipped=self.skipped)),
            workers={brief.name: brief for brief in worker_briefs(self.organization, seat, self.models.keys)},
            model_keys=self.models.keys,
            model_named=lambda key: self.models.for_chain([key]),
            tools=tools,
            revision=self.revision,
        )


class TurnRunner:
    """Counts the turns of this node while they run. Without ``meters`` nothing counts their tokens.

    Without ``onboardings`` no seat is onboarded.
    """

    def __init__(
        self,
        epoch: Callable[[], CompanyEpoch],
        asks: A2aService,
        meters: TurnMeters | None = None,
        steering: Steering | None = None,
        onboardings: SeatOnboardings | None = None,
    ) -> None:
        self._epoch = epoch
        self._asks = asks
        self._meters = meters
        self._steering = steering
        self._onboardings = onboardings
        self._running: Counter[CompanyEpoch] = Counter()
        self._one_ended = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """How many turns run now."""
        return self._running.total()

    async def wait_idle(self) -> None:
        """Return once no turn runs."""
        while self._running:
            await self._one_ended.wait()

    async def wait_ended(self, epoch: CompanyEpoch) -> None:
        """Return once no turn runs with this epoch; new ones begin with it for as long as it is the current one."""
        while epoch in self._running:
            await self._one_ended.wait()

    async def run(self, trigger: Trigger, fence: Fence, journal: TurnJournal, tools: SeatTools) -> TurnOutcome:
        """One turn. Raises ``Unavailable`` where the seat has left the company meanwhile."""
        epoch = self._epoch()
        setup = epoch.setup(trigger.handle, tools)
        if setup is None:
            raise Unavailable(f"{trigger.handle} is no agent seat of the company any more")
        if self._meters is not None:
            setup = replace(setup, meter=self._meters.meter(epoch.organization, trigger.handle))
        if self._onboardings is not None:
            setup = replace(setup, onboarding=self._onboardings.of(epoch.organization, trigger.handle))
        if self._steering is not None:
            setup = replace(setup, notes=self._steering.open(journal.turn_id, journal.noted))
        self._running[epoch] += 1
        try:
            with under(trigger.trace):
                outcome = await epoch.engine.run(trigger, fence, setup, journal)
        finally:
            self._count_ended(epoch)
            if self._steering is not None:
                self._steering.close(journal.turn_id, setup.notes)
        return outcome

    async def charge(self, handle: str, charge: RecordedCharge) -> None:
        """Count a recorded reply of the seat's, unless it is counted. Raises ``Unavailable``."""
        if self._meters is not None:
            await self._meters.recharge(self._epoch().organization, handle, charge)

    def ended(self, handle: str, turn_id: str) -> None:
        """A turn's end is on record. Before that it may go on elsewhere, and is known there by what it charged here."""
        company = self._epoch().organization
        seat = company.agent_seat_by_handle(handle)
        if self._meters is not None and seat is not None:
            self._meters.ended(turn_id, seat.agent_id or "")
        if self._onboardings is not None:
            self._onboardings.ended(company, handle, turn_id)

    def _count_ended(self, epoch: CompanyEpoch) -> None:
        self._running[epoch] -= 1
        if not self._running[epoch]:
            del self._running[epoch]
        # Whoever waits looks again; who comes later waits for the next end.
        self._one_ended.set()
        self._one_ended = asyncio.Event()

    async def settle(self, trigger: Trigger, outcome: TurnOutcome) -> None:
        """Answer the ask that this work was for, unless the turn waits for a colleague itself.

        A turn that failed answers too: whoever asked must not wait for ever. Raises ``Unavailable``.
        """
        if not trigger.answers_channel or outcome.asks:
            return
        failed = not outcome.finished or outcome.decision in (Decision.FAILED, Decision.STOPPED)
        content = outcome.artifact or f"No answer: {outcome.error or outcome.error_kind or outcome.decision}"
        await self._asks.answer(
            trigger.answers_channel,
            Answer(
                responder=trigger.handle,
                content=content,
                failed=failed,
                turn_id=outcome.turn_id,
                work_key=trigger.work_key,
                trace=trigger.trace,
            ),
        )
