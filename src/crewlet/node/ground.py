"""What a node stands on: its broker, its queue, its own database, and the company's records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import structlog

from crewlet.backends.nats import DeadLetterBox, JetStreamLog, JetStreamQueue, MembersStreams
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.ids import Ids
from crewlet.config import NodeConfig, StreamConfig, prepare_data_directory
from crewlet.coordination import CHANNELS, LEDGER, Channels, Ledger, RecordStore
from crewlet.coordination.slots import LEASES
from crewlet.node.bring_up import bring_up_s, brought_up
from crewlet.node.broker_access import BrokerAccess, open_broker
from crewlet.node.broker_writes import BrokerWrites
from crewlet.node.embedded_member import EmbeddedMember
from crewlet.node.member_watch import MemberPace, MemberWatch
from crewlet.node.seat_activity import SeatActivities
from crewlet.node.shared_stores import open_stores
from crewlet.notify import inbound_subscription
from crewlet.queue import DeadLetters, Log, QueueConfig, Subscription
from crewlet.store import BucketMarks, Database, EventLog

__all__ = ["Ground", "Stranded", "lay_ground"]

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Stranded:
    """Where the queue's word of stranded deliveries goes, once the node can act on it."""

    handler: Callable[[Subscription], None] | None = None

    def __call__(self, subscription: Subscription) -> None:
        """Pass the word on; before the node can act on it there is nothing of its own to be stranded."""
        if self.handler is not None:
            self.handler(subscription)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """All that knows nothing of the company yet, started. What the queue publishes is written to the event log.

    ``lease_ttl_s`` is the TTL in force, whoever set it (C-113, C-115): a claim for longer would be refused. ``member``
    watches this node's broker where it is a member of a cluster.
    """

    access: BrokerAccess
    member: MemberWatch | None
    queue: JetStreamQueue
    writes: BrokerWrites
    dead_letters: DeadLetters
    log: Log
    event_log: EventLog
    stores: Mapping[str, RecordStore]
    ledger: Ledger
    channels: Channels
    activities: SeatActivities
    on_stranded: Stranded
    lease_ttl_s: float


async def lay_ground(config: NodeConfig, clock: Clock, ids: Ids, stack: AsyncExitStack) -> Ground:
    """Start all of it; ``stack`` ends it in the opposite order. Raises ``StartRefused``, ``Unavailable``."""
    await asyncio.to_thread(prepare_data_directory, config.data_dir)
    # The broker's directory before the database: its lock waits for a predecessor that is on its way out.
    access = await open_broker(config, ids, stack)
    database = await _open_database(config, stack)
    event_log = EventLog(database)
    stack.push_async_callback(event_log.close)
    stranded, activities = Stranded(), SeatActivities()
    ack_waits: dict[Subscription, float] = {}
    queue = JetStreamQueue(
        access.connection,
        access.api,
        node=config.node_id,
        config=replace(_queue_config(config.stream, access.members), ack_waits=ack_waits),
        storage=access.storage,
        on_stranded=stranded,
        takes_as_found=access.members is not None,
    )
    stack.push_async_callback(queue.close)
    log = JetStreamLog(access.api, ids=ids)
    stack.callback(log.close)
    writes = BrokerWrites(queue, access)
    stack.push_async_callback(writes.close)
    queue.add_publish_listener(event_log.listener())
    if not config.keeps_events:
        _log.warning("events_not_stored", consequence="what this node does can be read while it runs, and is then gone")
    queue.add_publish_listener(activities.listen)
    patience_s = bring_up_s(config.stream)
    await brought_up("streams", queue.start, within_s=patience_s)

    async def stores_opened() -> Mapping[str, RecordStore]:
        return await open_stores(
            access,
            BucketMarks(database),
            lease_ttl_s=config.lease_ttl_s,
            replicas=config.stream.replicas if access.members is None else access.members.replicas,
            clock=clock,
            ids=ids,
            stack=stack,
        )

    stores = await brought_up("buckets", stores_opened, within_s=patience_s)
    in_force = None if config.coordination == "local" else stores[LEASES.name].age_s
    lease_ttl_s = config.lease_ttl_s if in_force is None else in_force
    # Known only now, and early enough: no mailbox is made before the ground is laid.
    ack_waits[inbound_subscription()] = min(lease_ttl_s, limits.ACK_WAIT_S)
    return Ground(
        access=access,
        member=_member_watch(config, access, clock, ids, stack),
        queue=queue,
        writes=writes,
        dead_letters=DeadLetterBox(access.api),
        log=log,
        event_log=event_log,
        stores=stores,
        ledger=Ledger(stores[LEDGER.name], clock),
        channels=Channels(stores[CHANNELS.name]),
        activities=activities,
        on_stranded=stranded,
        lease_ttl_s=lease_ttl_s,
    )


def _member_watch(
    config: NodeConfig, access: BrokerAccess, clock: Clock, ids: Ids, stack: AsyncExitStack
) -> MemberWatch | None:
    if access.broker is None or config.stream.cluster is None:
        return None
    member = EmbeddedMember(access.broker, access.api, config.node_id, ids)
    watch = MemberWatch(config.node_id, member, clock, MemberPace())
    watch.start()
    stack.push_async_callback(watch.close)
    return watch


def _queue_config(stream: StreamConfig, members: MembersStreams | None) -> QueueConfig:
    if members is not None:
        return QueueConfig(event_retention_s=members.event_retention_s, replicas=members.replicas)
    return QueueConfig(
        event_retention_s=stream.event_retention_s,
        mailbox_max_bytes=stream.mailbox_max_bytes,
        event_max_bytes=stream.event_max_bytes,
        config_max_bytes=stream.config_max_bytes,
        dead_letter_max_bytes=stream.dead_letter_max_bytes,
        journal_max_bytes=stream.journal_max_bytes,
        replicas=stream.replicas,
    )


async def _open_database(config: NodeConfig, stack: AsyncExitStack) -> Database:
    database = Database(config.store_path, scratch=config.store_scratch)
    await database.open()
    stack.push_async_callback(database.close)
    return database
