"""What a node is made of, put together in the order in which each part needs the one before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Protocol

import structlog

from crewlet.a2a import A2aService, AskTool
from crewlet.backends.memory import MemoryLeases
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.fence import Posture, ServingPosture
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.config import NodeConfig, company_of, source_of
from crewlet.coordination import (
    COOLDOWNS,
    MAILBOXES,
    POSITIONS,
    RATE,
    Cooldowns,
    KvLeases,
    Leases,
    Mailboxes,
    Onboardings,
    RateValve,
    SeatPauses,
)
from crewlet.coordination.slots import CONFIG, DUTIES, EPOCHS, LEASES, STATUS
from crewlet.inbox import TurnGate
from crewlet.node.bring_up import bring_up_s, brought_up
from crewlet.node.budgeting import Budgeting, open_budgets
from crewlet.node.colleagues import CompanyColleagues
from crewlet.node.company_applying import ApplyingParts, CompanyApplying
from crewlet.node.company_in_force import CompanyInForce, built_company, company_models
from crewlet.node.company_parts import CompanySource, shared_server_specs
from crewlet.node.directory import CompanyDirectory
from crewlet.node.duty_parts import CompanyRoster, Incarnation, NodeDuties, node_duties
from crewlet.node.fleet_company import FleetCompany, FleetCompanyParts
from crewlet.node.fleet_reads import FleetReads
from crewlet.node.fleet_tools import FleetTools
from crewlet.node.ground import Ground, lay_ground
from crewlet.node.key_cooldowns import KeyCooldowns
from crewlet.node.liveness import Liveness
from crewlet.node.mailboxes import ensure_mailboxes
from crewlet.node.news import News
from crewlet.node.node_status import NodeStatusSource
from crewlet.node.pause_control import SeatPauseControl
from crewlet.node.seat_onboarding import SeatOnboardings
from crewlet.node.seat_parts import SeatsWith, assemble_seats
from crewlet.node.seat_pausing import SeatPausing
from crewlet.node.shared_tools import start_shared_tools
from crewlet.node.steering import Steering
from crewlet.node.turn_runner import TurnRunner
from crewlet.notify import NotificationService, OperatorSource, Source, Sources
from crewlet.seats import HEARTBEAT, SWEEP, Host, Watchdog
from crewlet.tools import LookupColleague, ToolHost
from crewlet.tracing import Tracer, open_export
from crewlet.turns import TurnConfig, TurnEngine

__all__ = ["NodeParts", "Surroundings", "assemble"]

_log = structlog.get_logger(__name__)

_LEASES_NOTE: Final = (
    "with coordination.type local, leases are held in the node's own process and are not recorded here"
)
_COOLDOWNS_NOTE: Final = (
    "with coordination.type local, resting keys are known to the node's own process and not recorded"
)
_LOCAL_NOTES: Final = {
    **{slot.name: _LEASES_NOTE for slot in (LEASES, DUTIES, EPOCHS)},
    COOLDOWNS.name: _COOLDOWNS_NOTE,
}


class Surroundings(Protocol):
    """What is given from outside: environment, time and ids."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The process's environment; tool servers see the allowed part of it."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def ids(self) -> Ids:
        """Where ids come from."""
        ...

    @property
    def watchdog(self) -> Callable[[float], Watchdog] | None:
        """What makes the process's watchdog for a threshold in seconds; nothing where it must not be ended."""
        ...

    @property
    def sources(self) -> Sequence[Source]:
        """Sources of notifications beside the engine's own."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """A node's parts, all started, no seat claimed yet."""

    ground: Ground
    host: Host
    pausing: SeatPausing
    gate: TurnGate
    pauses: SeatPauseControl
    duties: NodeDuties
    leases: Leases
    status: NodeStatusSource
    liveness: Liveness
    reads: FleetReads
    fleet_tools: FleetTools
    steering: Steering
    runner: TurnRunner
    budgeting: Budgeting
    notifications: NotificationService
    tools: ToolHost
    company: CompanyInForce
    applying: CompanyApplying
    fleet_company: FleetCompany | None
    record_notes: Mapping[str, str]
    tracer: Tracer


async def assemble(
    config: NodeConfig, company: CompanySource, around: Surroundings, stack: AsyncExitStack
) -> NodeParts:
    """Start every part; ``stack`` ends them in the opposite order.

    Raises ``StartRefused``, ``ConfigError``, ``Unavailable``.
    """
    # The models first: what is wrong with the company is told before anything is started.
    cooldowns = KeyCooldowns(config.node_id, around.clock)
    models = company_models(company, around.clock, cooldowns.benched)
    stack.push_async_callback(models.models.aclose)
    tracer = await _tracer(config, around, stack)
    ground = await lay_ground(config, around.clock, around.ids, stack)

    def new_engine(turns: TurnConfig) -> TurnEngine:
        writes = ground.writes
        return TurnEngine(
            writes.publish, around.clock, around.ids, turns, tracer=tracer, publish_live=writes.publish_live
        )

    posture, sources = ServingPosture(), Sources([OperatorSource(), *around.sources])
    fleet_company = _fleet_company(config, ground, posture, around)
    number = 1
    if fleet_company is not None:
        stack.push_async_callback(fleet_company.close)
        taken, number = await _taken_over(fleet_company, company, bring_up_s(config.stream))
        if taken is not company:
            company, models = taken, company_models(taken, around.clock, cooldowns.benched)
    in_force = CompanyInForce(built_company(company, models, new_engine), number)
    stack.push_async_callback(in_force.close)
    colleagues = CompanyColleagues(in_force.organization)
    asks = A2aService(
        channels=ground.channels, publish=ground.writes.publish, clock=around.clock, ids=around.ids, tracer=tracer
    )
    tools = ToolHost(environment=around.environment, builtins=[LookupColleague(colleagues), AskTool(asks, colleagues)])
    stack.push_async_callback(tools.close)
    tasks = Tasks("node_parts")
    stack.push_async_callback(tasks.close)
    budgeting = open_budgets(ground, in_force.organization, around.clock, around.ids, stack)
    steering = Steering(ground.queue, lambda: len(host.nodes()) - 1, around.clock, around.ids)
    runner = TurnRunner(
        in_force.epoch,
        asks,
        budgeting.meters,
        steering,
        SeatOnboardings(Onboardings(ground.stores[POSITIONS.name], around.clock)),
    )
    registry = Mailboxes(ground.stores[MAILBOXES.name])

    async def mailboxes_ensured() -> None:
        handles = [seat.handle for seat in in_force.organization().agent_seats]
        await ensure_mailboxes(ground.queue, registry, handles)

    # Mailboxes take as long as the company is large, tool servers as long as the slowest: side by side.
    await asyncio.gather(
        brought_up("mailboxes", mailboxes_ensured, within_s=bring_up_s(config.stream)),
        start_shared_tools(tools, shared_server_specs(in_force.source()), tasks),
        _cooldowns_known(cooldowns, in_force, config, ground, stack),
    )
    leases = _leases(config, ground, around, stack)
    me = Incarnation(
        owner=f"{config.node_id}:{around.ids.hex(8)}",
        node_id=config.node_id,
        ttl_s=ground.lease_ttl_s,
        roles=config.roles,
    )
    roster = CompanyRoster(in_force.source, *([] if fleet_company is None else [fleet_company.confirm_current]))
    duties = node_duties(ground, leases, me, roster, budgeting, around.clock, around.ids)
    stack.push_async_callback(duties.stop)
    status = NodeStatusSource(
        in_flight=lambda: runner.in_flight,
        posture=posture,
        tool_servers=tools.status,
        started_at=around.clock.now(),
        broker=ground.access.backend,
        member=lambda: None if ground.member is None else ground.member.standing,
    )
    liveness = _liveness(me, around)
    seats = await assemble_seats(
        SeatsWith(
            config=config,
            ground=ground,
            me=me,
            leases=leases,
            posture=posture,
            status=status,
            liveness=liveness,
            company=in_force.source,
            epoch=in_force.epoch,
            tools=tools,
            runner=runner,
            budgeting=budgeting,
            sources=sources,
            clock=around.clock,
            ids=around.ids,
        ),
        stack,
    )
    host = seats.host
    pauses = SeatPauseControl(
        SeatPauses(ground.stores[POSITIONS.name]),
        in_force.organization,
        ground.writes.publish,
        around.clock,
        around.ids,
    )

    async def mail_held_anew() -> None:
        await seats.company_changed()
        budgeting.feed.say_soon()

    applying = CompanyApplying(
        ApplyingParts(
            in_force=in_force,
            new_engine=new_engine,
            runner=runner,
            cooldowns=cooldowns,
            tools=tools,
            host=host,
            queue=ground.queue,
            mailboxes=registry,
            forget_pauses=pauses.forget,
            mail_held_anew=mail_held_anew,
            news=News(ground.writes.publish, around.clock, around.ids),
            clock=around.clock,
            lasts=fleet_company is not None,
        ),
        in_force.next_number if fleet_company is None else fleet_company.activate,
    )
    stack.push_async_callback(applying.close)
    reads, fleet_tools = await _fleet_answers(config, ground, in_force, tools, host, fleet_company, stack)
    await steering.serve(stack)
    return NodeParts(
        ground=ground,
        duties=duties,
        leases=leases,
        status=status,
        liveness=liveness,
        reads=reads,
        fleet_tools=fleet_tools,
        steering=steering,
        host=host,
        pausing=seats.pausing,
        gate=seats.gate,
        pauses=pauses,
        runner=runner,
        budgeting=budgeting,
        notifications=NotificationService(
            publish=ground.writes.publish,
            directory=CompanyDirectory(in_force.organization),
            sources=sources,
            clock=around.clock,
            ids=around.ids,
            tracer=tracer,
            valve=RateValve(ground.stores[RATE.name], Random(around.ids.hex(16))),
            a_second_max=lambda: in_force.organization().notifications.a_second_max,
        ),
        tools=tools,
        company=in_force,
        applying=applying,
        fleet_company=fleet_company,
        record_notes=_LOCAL_NOTES if config.coordination == "local" else {},
        tracer=tracer,
    )


async def _fleet_answers(
    config: NodeConfig,
    ground: Ground,
    company: CompanyInForce,
    tools: ToolHost,
    host: Host,
    shared: FleetCompany | None,
    stack: AsyncExitStack,
) -> tuple[FleetReads, FleetTools]:
    """What is asked of every live node, and answered to the others, until ``stack`` ends."""

    def alive() -> list[str]:
        return [row.node_id for row in host.nodes()]

    reads = FleetReads(ground.queue, ground.event_log, config.node_id, alive)
    fleet_tools = FleetTools(
        queue=ground.queue,
        me=config.node_id,
        alive=alive,
        company=company,
        tools=tools,
        unplaceable=lambda: {seat.handle for seat in host.unplaceable()},
        behind=lambda: "" if shared is None else "; ".join(shared.problems()),
    )
    await reads.serve(stack)
    await fleet_tools.serve(stack)
    return reads, fleet_tools


def _fleet_company(config: NodeConfig, ground: Ground, posture: Posture, around: Surroundings) -> FleetCompany | None:
    if config.coordination == "local":
        return None
    return FleetCompany(
        FleetCompanyParts(
            config=ground.stores[CONFIG.name],
            status=ground.stores[STATUS.name],
            node_id=config.node_id,
            posture=posture,
            clock=around.clock,
            ids=around.ids,
        )
    )


async def _taken_over(fleet: FleetCompany, own: CompanySource, within_s: float) -> tuple[CompanySource, int]:
    """The document that this node starts with, and its number: the fleet's, wherever the fleet has one.

    Raises ``ConfigError`` where this node cannot run what the fleet runs, ``Unavailable``.
    """
    active = await brought_up("company", lambda: fleet.first(own.document), within_s=within_s)
    document = active.pointer.document
    if document == own.document:
        return own, active.epoch
    _log.warning(
        "company_document_differs",
        problem=f"the fleet runs document number {active.epoch}, and this node's own file is another",
        activated_by=active.pointer.activated_by,
        activated_at=active.pointer.activated_at.isoformat(),
        remedy="`crewlet apply FILE` puts a file in force for the whole fleet",
    )
    loaded = await asyncio.to_thread(lambda: company_of(source_of(document, f"the fleet's company {active.epoch}")))
    return replace(own, organization=loaded.organization, document=document), active.epoch


async def _cooldowns_known(
    cooldowns: KeyCooldowns, company: CompanyInForce, config: NodeConfig, ground: Ground, stack: AsyncExitStack
) -> None:
    """The company's models know which keys rest. A node on its own shares none: there is no peer to tell (C-105)."""
    cooldowns.take_over(company.epoch().models)
    stack.push_async_callback(cooldowns.close)
    if config.coordination != "local":
        await cooldowns.share(Cooldowns(ground.stores[COOLDOWNS.name]))


async def _tracer(config: NodeConfig, around: Surroundings, stack: AsyncExitStack) -> Tracer:
    # In a thread: the exporter takes a moment to load where one is wanted.
    export = await asyncio.to_thread(open_export, around.environment, node=config.node_id)
    if export is not None:
        stack.push_async_callback(export.close)
    return Tracer(around.clock, around.ids, export)


def _leases(config: NodeConfig, ground: Ground, around: Surroundings, stack: AsyncExitStack) -> Leases:
    """Leases where the node file has them; every other shared record is the store's in either case (C-209)."""
    if config.coordination == "local":
        return MemoryLeases(around.clock, alone=True, lease_ttl_s=config.lease_ttl_s)
    leases = KvLeases(
        leases=ground.stores[LEASES.name],
        duties=ground.stores[DUTIES.name],
        epochs=ground.stores[EPOCHS.name],
        clock=around.clock,
        ids=around.ids,
    )
    stack.push_async_callback(leases.close)
    return leases


def _liveness(me: Incarnation, around: Surroundings) -> Liveness:
    """The loops of the host, each with two of its beats' time; past the lease TTL the heartbeat's is the node's end."""
    return Liveness(
        around.clock,
        None if around.watchdog is None else around.watchdog(me.ttl_s),
        patience_s={HEARTBEAT: 2 * me.ttl_s / 3, SWEEP: max(2 * limits.SEAT_SWEEP_EVERY_S, me.ttl_s)},
        watched=frozenset({HEARTBEAT}),
    )
