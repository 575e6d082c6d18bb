"""What a node is made of, put together in the order in which each part needs the one before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from crewlet.a2a import A2aService, AskTool
from crewlet.backends.memory import MemoryLeases
from crewlet.backends.nats import DeadLetterBox, JetStreamQueue, OpenedBucket, open_bucket
from crewlet.base.clock import Clock
from crewlet.base.fence import Fence, ServingPosture
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.config import NodeConfig, models_without_keys, prepare_data_directory
from crewlet.coordination import CHANNELS, LEDGER, Channels, Ledger, Slot
from crewlet.inbox import SeatInboxParts, Trigger, TurnOutcome
from crewlet.llm import build_models
from crewlet.node.broker_access import BrokerAccess, open_broker
from crewlet.node.broker_writes import BrokerWrites
from crewlet.node.colleagues import CompanyColleagues
from crewlet.node.company_parts import CompanySource, provider_configs, shared_server_specs, turn_config
from crewlet.node.directory import CompanyDirectory
from crewlet.node.mailboxes import ensure_mailboxes
from crewlet.node.seat_activity import SeatActivities
from crewlet.node.seat_runtime import SeatRuntime, SeatRuntimeParts
from crewlet.node.shared_tools import start_shared_tools
from crewlet.node.turn_runner import CompanyEpoch, TurnRunner
from crewlet.notify import NotificationService, OperatorSource
from crewlet.queue import DeadLetters, QueueConfig, Subscription
from crewlet.seats import Host, HostConfig
from crewlet.store import Database, EventLog
from crewlet.tools import LookupColleague, ToolHost
from crewlet.turns import TurnEngine

__all__ = ["NodeParts", "Surroundings", "assemble"]


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


@dataclass(slots=True)
class Stranded:
    """Where the queue's word of stranded deliveries goes, once the node can act on it."""

    handler: Callable[[Subscription], None] | None = None

    def __call__(self, subscription: Subscription) -> None:
        if self.handler is not None:
            self.handler(subscription)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """A node's parts, all started, no seat claimed yet."""

    access: BrokerAccess
    queue: JetStreamQueue
    writes: BrokerWrites
    dead_letters: DeadLetters
    event_log: EventLog
    channels: Channels
    host: Host
    runner: TurnRunner
    notifications: NotificationService
    activities: SeatActivities
    tools: ToolHost
    epoch: CompanyEpoch
    on_stranded: Stranded


async def assemble(
    config: NodeConfig, company: CompanySource, around: Surroundings, stack: AsyncExitStack
) -> NodeParts:
    """Start every part; ``stack`` ends them in the opposite order.

    Raises ``StartRefused``, ``ConfigError``, ``Unavailable``.
    """
    organization = company.organization
    skipped = models_without_keys(organization, company.resolve)
    models = build_models(provider_configs(company, skipped), resolve=company.resolve, clock=around.clock)
    stack.push_async_callback(models.aclose)
    await asyncio.to_thread(prepare_data_directory, config.data_dir)
    # The broker's directory before the database: its lock waits for a predecessor that is on its way out.
    access = await open_broker(config, around.ids, stack)
    database = Database(config.store_path)
    await database.open()
    stack.push_async_callback(database.close)
    stranded, activities, event_log = Stranded(), SeatActivities(), EventLog(database)
    stack.push_async_callback(event_log.close)
    queue = JetStreamQueue(
        access.connection,
        access.api,
        node=config.node_id,
        config=QueueConfig(event_retention_s=config.stream.event_retention_s),
        storage=access.storage,
        on_stranded=stranded,
    )
    stack.push_async_callback(queue.close)
    writes = BrokerWrites(queue, access)
    stack.push_async_callback(writes.close)
    queue.add_publish_listener(event_log.listener())
    queue.add_publish_listener(activities.listen)
    await queue.start()
    ledger, channels = await _records(access, around)

    def current() -> CompanySource:
        return company

    colleagues = CompanyColleagues(lambda: current().organization)
    asks = A2aService(channels=channels, publish=writes.publish, clock=around.clock, ids=around.ids)
    tools = ToolHost(environment=around.environment, builtins=[LookupColleague(colleagues), AskTool(asks, colleagues)])
    stack.push_async_callback(tools.close)
    tasks = Tasks("node_parts")
    stack.push_async_callback(tasks.close)
    engine = TurnEngine(writes.publish, around.clock, around.ids, turn_config(organization))
    epoch = CompanyEpoch(organization, models, skipped, engine)
    runner = TurnRunner(lambda: epoch, asks)
    gate = asyncio.Semaphore(config.max_concurrent)

    def inbox_parts(run_turn: Callable[[Trigger, Fence], Awaitable[TurnOutcome]]) -> SeatInboxParts:
        return SeatInboxParts(
            admission=host,
            posture=ServingPosture(),
            ledger=ledger,
            gate=gate,
            run_turn=run_turn,
            settle=runner.settle,
            publish=writes.publish,
            clock=around.clock,
            ids=around.ids,
        )

    hooks = SeatRuntime(
        SeatRuntimeParts(
            queue=queue,
            tools=tools,
            runner=runner,
            company=current,
            inbox_parts=inbox_parts,
            clock=around.clock,
            ids=around.ids,
        )
    )
    owner = f"{config.node_id}:{around.ids.hex(8)}"
    host = Host(
        leases=MemoryLeases(around.clock, alone=True),
        hooks=hooks,
        clock=around.clock,
        config=HostConfig(owner=owner, node_id=config.node_id, ttl_s=config.lease_ttl_s),
    )
    notifications = NotificationService(
        publish=writes.publish,
        directory=CompanyDirectory(lambda: current().organization),
        sources=[OperatorSource()],
        clock=around.clock,
        ids=around.ids,
    )
    # Mailboxes take as long as the company is large, tool servers as long as the slowest: side by side.
    await asyncio.gather(
        ensure_mailboxes(queue, [seat.handle for seat in organization.agent_seats]),
        start_shared_tools(tools, shared_server_specs(company), tasks),
    )
    return NodeParts(
        access=access,
        queue=queue,
        writes=writes,
        dead_letters=DeadLetterBox(access.api),
        event_log=event_log,
        channels=channels,
        host=host,
        runner=runner,
        notifications=notifications,
        activities=activities,
        tools=tools,
        epoch=epoch,
        on_stranded=stranded,
    )


async def _records(access: BrokerAccess, around: Surroundings) -> tuple[Ledger, Channels]:
    async def bucket(slot: Slot) -> OpenedBucket:
        return await open_bucket(access.api, slot, storage=access.storage, ids=around.ids)

    ledger, channels = await asyncio.gather(bucket(LEDGER), bucket(CHANNELS))
    return Ledger(ledger.store, around.clock), Channels(channels.store)
