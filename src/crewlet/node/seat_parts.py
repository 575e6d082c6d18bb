"""The seats of a node put together: who holds them, what establishes them, and what a person's pause does to them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.fence import Fence, Posture
from crewlet.base.ids import Ids
from crewlet.base.stop import StoppableFence
from crewlet.config import NodeConfig
from crewlet.coordination import POSITIONS, Leases
from crewlet.inbox import Refusal, RunTurn, SeatInboxParts, TurnGate, TurnOutcome, UnheardMail
from crewlet.node.budget_park import BudgetPark
from crewlet.node.budgeting import Budgeting
from crewlet.node.company_parts import CompanySource
from crewlet.node.duty_parts import Incarnation
from crewlet.node.ground import Ground
from crewlet.node.liveness import Liveness
from crewlet.node.model_hold import ModelHold
from crewlet.node.node_status import NodeStatusSource
from crewlet.node.provider_hold import ProviderHold
from crewlet.node.seat_admitted import SeatAdmitted
from crewlet.node.seat_holds import SeatHolds
from crewlet.node.seat_journals import SeatJournals, stopped_since
from crewlet.node.seat_pausing import SeatPausing
from crewlet.node.seat_runtime import SeatRuntime, SeatRuntimeParts
from crewlet.node.turn_runner import CompanyEpoch, TurnRunner
from crewlet.notify import Sources
from crewlet.queue import Defer
from crewlet.seats import Host, HostConfig
from crewlet.tools import ToolHost

__all__ = ["SeatAdmission", "SeatParts", "SeatRefusals", "SeatsWith", "assemble_seats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatsWith:
    """What seats are held by and work with; ``company`` is asked anew wherever it matters."""

    config: NodeConfig
    ground: Ground
    me: Incarnation
    leases: Leases
    posture: Posture
    status: NodeStatusSource
    liveness: Liveness
    company: Callable[[], CompanySource]
    epoch: Callable[[], CompanyEpoch]
    tools: ToolHost
    runner: TurnRunner
    budgeting: Budgeting
    sources: Sources
    clock: Clock
    ids: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatParts:
    """The seats, none claimed yet; their pauses are followed."""

    host: Host
    holds: SeatHolds
    admitted: SeatAdmitted
    pausing: SeatPausing
    park: BudgetPark
    models: ModelHold
    providers: ProviderHold
    gate: TurnGate

    async def company_changed(self) -> None:
        """Another document is in force: whose mail waits is judged by it."""
        await self.models.company_changed()
        await self.providers.company_changed()
        await self.park.ceilings_changed()


class SeatRefusals:
    """Several reasons why a seat's mail may have to wait; the first that stands is told."""

    def __init__(self, *reasons: Refusal) -> None:
        self._reasons = reasons

    async def refuses(self, handle: str) -> Defer | None:
        """As the reasons say it."""
        for reason in self._reasons:
            if (why := await reason.refuses(handle)) is not None:
                return why
        return None


class SeatAdmission:
    """Whether a turn may start, and its fence: ownership is the host's to say, a person's stop comes behind it."""

    def __init__(self, host: Host, pausing: SeatPausing) -> None:
        self._host = host
        self._pausing = pausing

    def may_start(self, handle: str) -> int | None:
        """The epoch to run under, or ``None``."""
        return self._host.may_start(handle)

    def fence(self, handle: str, epoch: int) -> Fence:
        """The fence of that grant, which closes for a person's stop too."""
        return StoppableFence(self._host.fence(handle, epoch), self._pausing.stop(handle))


async def assemble_seats(given: SeatsWith, stack: AsyncExitStack) -> SeatParts:
    """Put them together; ``stack`` ends what they run. Turns ask the host for admission, and it runs the hooks."""
    ground, gate = given.ground, TurnGate(given.config.max_concurrent)

    def may_start(handle: str) -> int | None:
        return host.may_start(handle)

    holds, admitted = SeatHolds(ground.queue, may_start), SeatAdmitted()
    pausing = SeatPausing(ground.stores[POSITIONS.name], holds, given.clock)
    park = BudgetPark(
        given.budgeting.budgets,
        lambda: given.company().organization,
        holds,
        clock=given.clock,
        on_refused=given.budgeting.feed.refused,
    )
    stack.push_async_callback(park.close)
    models = ModelHold(lambda: given.company().organization, holds)
    providers = ProviderHold(given.epoch, holds, given.clock)
    stack.push_async_callback(providers.close)
    refusals = SeatRefusals(models, providers)

    def inbox_parts(run_turn: RunTurn) -> SeatInboxParts:
        return SeatInboxParts(
            admission=SeatAdmission(host, pausing),
            posture=given.posture,
            withheld=pausing.withheld,
            stopped_since=stopped_since(pausing),
            holds=refusals,
            park=park,
            ledger=ground.ledger,
            gate=gate,
            run_turn=run_turn,
            settle=given.runner.settle,
            charge=given.runner.charge,
            ended=given.runner.ended,
            revision=lambda: given.epoch().revision,
            publish=ground.writes.publish,
            sources=given.sources,
            clock=given.clock,
            ids=given.ids,
        )

    hooks = SeatRuntime(
        SeatRuntimeParts(
            queue=ground.queue,
            tools=given.tools,
            runner=given.runner,
            company=given.company,
            inbox_parts=inbox_parts,
            holds=holds,
            pauses=pausing,
            models=refusals,
            journals=SeatJournals(ground.log, given.leases, owner=given.me.owner, clock=given.clock, ids=given.ids),
            admitted=admitted,
            may_start=may_start,
            # A drain waits for every turn, however long; whoever cannot wait sends a second signal.
            release_wait_s=lambda: None if given.status.draining else limits.SEAT_RELEASE_WAIT_S,
            clock=given.clock,
            ids=given.ids,
        )
    )
    stack.push_async_callback(hooks.close)
    host = _host(given, hooks)
    stack.callback(ground.queue.add_unheard_listener(UnheardMail(inbox_parts(_runs_none), ground.log).heard))
    stack.push_async_callback(pausing.close)
    await pausing.start()
    park.start()
    return SeatParts(
        host=host,
        holds=holds,
        admitted=admitted,
        pausing=pausing,
        park=park,
        models=models,
        providers=providers,
        gate=gate,
    )


async def _runs_none(*_: object) -> TurnOutcome:
    raise AssertionError("who speaks for buried mail runs no turn")


def _host(given: SeatsWith, hooks: SeatRuntime) -> Host:
    config, me = given.config, given.me
    return Host(
        leases=given.leases,
        hooks=hooks,
        clock=given.clock,
        status=given.status,
        beat=given.liveness.beat,
        config=HostConfig(
            owner=me.owner,
            node_id=me.node_id,
            roles=me.roles,
            labels=config.labels,
            ttl_s=me.ttl_s,
            alone=config.coordination == "local",
        ),
    )
