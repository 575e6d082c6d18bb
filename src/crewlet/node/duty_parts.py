"""This node's duties and chores, put together: the runner, maintenance and its jobs, and when they begin and end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from crewlet.a2a import ChannelSweep
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.ids import Ids
from crewlet.base.node_roles import NODE_ROLES
from crewlet.coordination import MAILBOXES, SANDBOX_RUNS, Leases, Mailboxes, SandboxRuns
from crewlet.duties import (
    Chore,
    Duty,
    DutyRunner,
    DutyStatus,
    Job,
    LaneSweep,
    MailboxSweep,
    RetirementParts,
    event_retention,
    mailbox_job,
    maintenance,
    marker_job,
)
from crewlet.node.budgeting import Budgeting
from crewlet.node.company_parts import CompanySource
from crewlet.node.ground import Ground
from crewlet.node.mailboxes import say_present

__all__ = ["CompanyRoster", "Incarnation", "NodeDuties", "maintenance_jobs", "node_duties", "presence_of_seats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """Which process this is: its owner of leases, its node, and the lease TTL in force for what it holds."""

    owner: str
    node_id: str
    ttl_s: float
    roles: tuple[str, ...] = NODE_ROLES


async def _nobody_to_ask() -> None:
    await asyncio.sleep(0)


class CompanyRoster:
    """The agent seats of the document that this node runs, once ``confirm`` has let it stand for the company's.

    On a fleet it raises ``Unavailable`` while this node is behind; a node that shares no document has nobody to ask.
    """

    def __init__(
        self, source: Callable[[], CompanySource], confirm: Callable[[], Awaitable[None]] = _nobody_to_ask
    ) -> None:
        self._source = source
        self._confirm = confirm

    async def agent_handles(self) -> frozenset[str]:
        """The handles of all of them. Raises ``Unavailable``."""
        await self._confirm()
        return frozenset(seat.handle for seat in self._source().organization.agent_seats)


class NodeDuties:
    """The runner, and what it is started with once the node serves."""

    def __init__(self, runner: DutyRunner, duties: list[Duty], chores: list[Chore]) -> None:
        self._runner = runner
        self._duties = duties
        self._chores = chores

    def start(self) -> None:
        """Their first ticks come now."""
        self._runner.start(self._duties, self._chores)

    async def stop(self) -> None:
        """Their last ticks end, and what was held is given back; harmless when repeated, or never started."""
        await self._runner.stop()

    def status(self) -> tuple[DutyStatus, ...]:
        """How each stands on this node."""
        return self._runner.status()

    def problems(self) -> tuple[str, ...]:
        """What a person should know of them."""
        return self._runner.problems()


def node_duties(
    ground: Ground,
    leases: Leases,
    me: Incarnation,
    roster: CompanyRoster,
    budgeting: Budgeting,
    clock: Clock,
    ids: Ids,
) -> NodeDuties:
    """All that this node does besides its seats."""
    runner = DutyRunner(leases, owner=me.owner, node_id=me.node_id, clock=clock, roles=me.roles)
    retirement = RetirementParts(
        leases=leases,
        mailboxes=Mailboxes(ground.stores[MAILBOXES.name]),
        runs=SandboxRuns(ground.stores[SANDBOX_RUNS.name]),
        queue=ground.queue,
        log=ground.log,
        clock=clock,
        ids=ids,
        owner=me.owner,
        node_id=me.node_id,
        ttl_s=me.ttl_s,
    )
    lanes = LaneSweep(budgeting.budgets, leases, clock)
    jobs = maintenance_jobs(ground, MailboxSweep(roster, retirement), lanes, clock, ids)
    chores = [
        event_retention(ground.event_log, clock),
        presence_of_seats(retirement.mailboxes, roster),
        budgeting.feed.chore(),
    ]
    return NodeDuties(runner, [maintenance(jobs)], chores)


def presence_of_seats(mailboxes: Mailboxes, roster: CompanyRoster) -> Chore:
    """Every node contradicts whoever missed a seat that its own document has."""

    async def work() -> None:
        await say_present(mailboxes, await roster.agent_handles())

    return Chore(name="seat-presence", every_s=limits.MAINTENANCE_EVERY_S, work=work)


def maintenance_jobs(ground: Ground, sweep: MailboxSweep, lanes: LaneSweep, clock: Clock, ids: Ids) -> list[Job]:
    """What no age takes: mailboxes of removed seats, asks without an end, the lanes of processes gone, markers."""
    channels = ChannelSweep(channels=ground.channels, publish=ground.writes.publish, clock=clock, ids=ids)
    return [
        mailbox_job(sweep),
        Job("a2a_channels", channels.run),
        Job("budget_lanes", lanes.run),
        marker_job(ground.stores, clock),
    ]
