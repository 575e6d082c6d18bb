"""One process of the company: boots, holds seats, answers its faces, drains. The composition root."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID, uuid5

import structlog

from crewlet import __version__, topics
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.base.trace import Trace, child_of, fresh_trace
from crewlet.config import NodeConfig
from crewlet.coordination import NodeStatus
from crewlet.coordination.lease_names import resource_member
from crewlet.coordination.slots import LEASES
from crewlet.events import Body, Event, new_event
from crewlet.events.types import InboundDelivery, OrgStarted, OrgStopped, RawWebhook
from crewlet.node.budget_views import BudgetsView
from crewlet.node.company_applying import CompanyApplying
from crewlet.node.company_parts import CompanySource, placed_seats
from crewlet.node.face import (
    Health,
    MailboxView,
    MessageState,
    MessageView,
    NodeFace,
    NoSuchSeat,
    NotAnAgent,
    Readiness,
    SeatView,
    SentMessage,
)
from crewlet.node.fleet_company import revision_of
from crewlet.node.fleet_tools import ToolsView
from crewlet.node.fleet_views import FleetView, fleet_view
from crewlet.node.mailbox_views import mailbox_views
from crewlet.node.mailboxes import inbox_of
from crewlet.node.message_chain import events_of_message
from crewlet.node.message_view import asks_in, message_view
from crewlet.node.news import News
from crewlet.node.parts import NodeParts, assemble
from crewlet.node.pause_control import SeatPauseControl
from crewlet.node.seat_views import seat_views
from crewlet.node.shared_records import StoredRecords
from crewlet.node.shared_stores import lost_buckets
from crewlet.node.steering import Steering
from crewlet.notify import OPERATOR, Source, inbound_subscription, wake_id
from crewlet.queue import DeadLetters, StreamSubscription, Subscription
from crewlet.seats import Watchdog
from crewlet.store import EventFilter, StoredEvent

__all__ = ["Node", "NodeSettings"]

_log = structlog.get_logger(__name__)
_DELIVERIES: Final = UUID("8a5f0a63-52a5-5a43-8d6d-5f2b0c7d9e21")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """What a node is started with; the environment is read by whoever starts it."""

    config: NodeConfig
    company: CompanySource
    environment: Mapping[str, str]
    clock: Clock
    ids: Ids
    watchdog: Callable[[float], Watchdog] | None = None
    sources: Sequence[Source] = ()


class Node(NodeFace):
    """A node. Made by :meth:`boot`, put to work by :meth:`start_seats`, ended by :meth:`drain`."""

    def __init__(self, settings: NodeSettings, parts: NodeParts, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._parts = parts
        self._stack = stack
        self._started_at = settings.clock.now()
        self._started = False
        self._draining = False
        self._on_draining: list[Callable[[], None]] = []
        self._close_face: Callable[[], Awaitable[None]] | None = None
        self._news = News(parts.ground.writes.publish, settings.clock, settings.ids)
        self._tasks = Tasks("node")

    @classmethod
    async def boot(cls, settings: NodeSettings) -> Node:
        """Everything but the seats stands: store, broker, buckets, tool servers, mailboxes.

        What had been started is ended again when a step fails.

        Raises ``StartRefused``, ``ConfigError``, ``Unavailable``.
        """
        async with AsyncExitStack() as stack:
            try:
                parts = await assemble(settings.config, settings.company, settings, stack)
            except CrewletError as error:
                # Without the error's text: whoever started the node says it once.
                _log.info("engine_boot_abandoned", kind=type(error).__name__)
                raise
            return cls(settings, parts, stack.pop_all())

    async def start_seats(self) -> None:
        """Say that this node is there, claim seats and attach each one's inbox last, then route what arrives."""
        parts = self._parts
        parts.ground.on_stranded.handler = self._give_back_stranded
        organization = self._parts.company.organization()
        parts.liveness.start()
        await parts.host.start(placed_seats(organization))
        if self._routes:
            # Behind this node's presence: a peer that sees none takes what anybody holds for a dead node's.
            await self._free_inbound()
            await parts.ground.queue.subscribe(inbound_subscription(), parts.notifications.handle)
        self._started = True
        if parts.fleet_company is not None:
            in_force = parts.company
            parts.fleet_company.start(
                lambda: in_force.number, lambda: in_force.source().document, parts.applying.follow
            )
        parts.duties.start()
        await self._news.tell(OrgStarted(company=organization.name, seats=len(organization.agent_seats)))
        _log.info("engine_started", company=organization.name, seats=len(parts.host.held()))

    def closes(self, close_face: Callable[[], Awaitable[None]]) -> None:
        """Have ``close_face`` awaited during the drain, once the seats are released."""
        self._close_face = close_face

    async def drain(self) -> None:
        """No new turn starts, running ones finish, seats are released, everything ends."""
        self._draining = self._parts.status.draining = True
        for call in [*self._on_draining]:
            call()
        parts = self._parts
        await parts.liveness.stop()
        parts.host.drain()
        # Whoever waits at the gate gives its delivery back: a peer may have room.
        parts.gate.close()
        await self._news.tell(OrgStopped(company=self._parts.company.organization().name))
        inbound = (inbound_subscription(),) if self._routes else ()
        for subscription in (*inbound, *map(inbox_of, parts.host.held())):
            await parts.ground.queue.quiesce(subscription)
        if self._routes:
            await parts.ground.queue.wait_idle(inbound_subscription())
            await parts.ground.queue.detach(inbound_subscription())
        # Each seat is given back as its turn ends: a peer need not wait for the longest.
        await asyncio.gather(self._wait_for_turns(), parts.host.release_all())
        _log.info("drain_complete")
        if self._close_face is not None:
            await self._close_face()
        await parts.duties.stop()
        await self._tasks.close()
        await self._stack.aclose()
        _log.info("engine_stopped")

    @property
    def _routes(self) -> bool:
        """Whether this node routes what arrives from outside; another one does, where it does not."""
        return "ingress" in self._settings.config.roles

    async def _wait_for_turns(self) -> None:
        while self._parts.runner.in_flight:
            try:
                async with asyncio.timeout(limits.DRAIN_PROGRESS_EVERY_S):
                    await self._parts.runner.wait_idle()
            except TimeoutError:
                _log.info("drain_in_progress", in_flight=self._parts.runner.in_flight)

    def health(self) -> Health:
        """How the process stands."""
        parts, organization = self._parts, self._parts.company.organization()
        return Health(
            status="shutting_down" if self._draining else "ok",
            node=self._settings.config.node_id,
            roles=self._settings.config.roles,
            company=organization.name,
            configured=True,
            in_flight=parts.runner.in_flight,
            shutting_down=self._draining,
            seats=parts.host.held(),
            version=__version__,
            started_at=self._started_at,
            queue_backend=parts.ground.access.backend,
            stream_in_memory=self._settings.config.stream.is_in_memory,
            models_are_real=parts.company.epoch().models.are_real,
            problems=self._problems(),
            unproven_seconds=parts.host.unproven() or None,
        )

    def _problems(self) -> tuple[str, ...]:
        parts = self._parts
        linked = "" if parts.ground.access.connection.connected else "the link to the broker is down"
        missing = parts.host.missing() if self._started and not self._draining else ()
        shown = ", ".join(missing[: limits.SEATS_SHOWN_MAX]) + (", …" if len(missing) > limits.SEATS_SHOWN_MAX else "")
        unheld = f"seats that are not established here: {shown}" if missing else ""
        failed = [row for row in parts.tools.status() if row.failed]
        tools = [f"the tool server {row.name} does not serve: {row.error}" for row in failed[: limits.SEATS_SHOWN_MAX]]
        shared = () if parts.fleet_company is None else parts.fleet_company.problems()
        lost = lost_buckets(parts.ground.stores)
        pauses = parts.pausing.trouble
        silent = parts.host.trouble
        member = "" if parts.ground.member is None or self._draining else parts.ground.member.trouble
        troubles = (
            linked,
            lost,
            member,
            silent,
            pauses,
            parts.ground.writes.trouble,
            parts.ground.event_log.trouble,
            unheld,
            *tools,
        )
        loops = () if self._draining else parts.liveness.problems()
        return tuple(each for each in (*troubles, *shared, *parts.duties.problems(), *loops) if each)

    def ready(self) -> Readiness:
        """Whether to send it work."""
        reasons: list[str] = []
        if self._draining:
            reasons.append("draining")
        if not self._started:
            reasons.append("starting")
        if not self._parts.ground.access.connection.connected:
            reasons.append("broker_unlinked")
        elif self._parts.ground.writes.trouble:
            reasons.append("broker_takes_no_writes")
        elif self._parts.host.trouble:
            reasons.append("leases_not_renewed")
        return Readiness(tuple(reasons))

    def seats(self) -> tuple[SeatView, ...]:
        """Every seat of the company."""
        parts = self._parts
        return seat_views(
            parts.company.epoch(), parts.host, parts.ground.activities, parts.pausing, parts.budgeting.feed.refuses
        )

    async def send_message(self, handle: str, text: str, *, principal: str, parent: Trace | None = None) -> SentMessage:
        """Put a message on its way to a seat."""
        organization = self._parts.company.organization()
        seat = organization.seat(handle)
        if seat is None:
            raise NoSuchSeat(handle, [each.handle for each in organization.agent_seats])
        if not seat.is_agent:
            raise NotAnAgent(f"{handle} is a person; write to them where they work")
        ids = self._settings.ids
        trace = fresh_trace(ids) if parent is None else child_of(parent, ids)
        raw = self._event(RawWebhook(integration=OPERATOR, recipient=handle, sender=principal, body=text), trace)
        received = self._parts.tracer.span("webhook.receive", trace, integration=OPERATOR, seat=handle)
        try:
            with received:
                async with asyncio.timeout(limits.MESSAGE_SEND_TIMEOUT_S):
                    await self._send(raw)
        except TimeoutError:
            raise Unavailable(
                "the broker did not take the message in time; it may be on its way all the same"
            ) from None
        return SentMessage(raw.id, raw.trace_id)

    async def _send(self, raw: Event) -> None:
        body = raw.data
        assert isinstance(body, RawWebhook)
        await self._parts.ground.writes.publish(topics.NOTIFICATIONS_INBOUND, raw)
        delivery = InboundDelivery(
            integration=OPERATOR,
            label=f"{OPERATOR}:message",
            recipient=body.recipient,
            sender=body.sender,
            body=body.body,
            source_event_id=raw.id,
        )
        await self._record_delivery(delivery, raw)

    async def message(self, message_id: str) -> MessageView | None:
        """How a message stands."""
        delivery = await self._parts.reads.event(_delivery_id(message_id))
        if delivery is None:
            return None
        body = delivery.data
        assert isinstance(body, InboundDelivery), "its id is derived for this type alone"
        chain = await self._parts.reads.chain(delivery.trace_id)
        events = events_of_message(body, chain.events)
        asks = [await self._parts.ground.channels.get(channel_id) for channel_id in asks_in(events)]
        known = [ask for ask in asks if ask is not None]
        view = replace(message_view(delivery, events, known), coverage=chain.coverage)
        return view if view.state != MessageState.WAITING else replace(view, reason=await self._why_waiting(view))

    async def _why_waiting(self, view: MessageView) -> str:
        # The log of a node that is gone is away with it; that the work is done, the fleet's own record says.
        wake = wake_id(view.id, view.handle)
        if await self._parts.ground.ledger.worked(view.handle, [wake]):
            return "it was worked, and no live node's log says how; the answer is known once the node that did is back"
        return self._why_stopped(view.handle)

    def _why_stopped(self, handle: str) -> str:
        """What a message to this seat waits for, as far as this node knows; empty where it is about to be worked."""
        reason = next((seat.stopped_reason for seat in self.seats() if seat.handle == handle), None)
        return f"the seat is stopped: {reason}" if reason else ""

    async def events(self, wanted: EventFilter) -> list[StoredEvent]:
        """Rows of the event log, newest first."""
        return await self._parts.ground.event_log.events(wanted)

    async def event(self, event_id: str) -> StoredEvent | None:
        """One row."""
        return await self._parts.ground.event_log.event(event_id)

    async def turn(self, turn_id: str) -> list[StoredEvent]:
        """Every row of one run, oldest first."""
        return list((await self._parts.ground.event_log.turn(turn_id)).events)

    @property
    def dead_letters(self) -> DeadLetters:
        """What the whole company could not work."""
        return self._parts.ground.dead_letters

    @property
    def pauses(self) -> SeatPauseControl:
        """Pausing and resuming seats."""
        return self._parts.pauses

    @property
    def steering(self) -> Steering:
        """Telling running turns something."""
        return self._parts.steering

    @property
    def company(self) -> CompanyApplying:
        """The company in force, and the way to another one."""
        return self._parts.applying

    async def fleet(self) -> FleetView:
        """The fleet, as the leases say."""
        leases, config = self._parts.leases, self._settings.config
        nodes, seats, duties = await asyncio.gather(leases.held("node"), leases.held("seat"), leases.held("worker"))
        if config.coordination == "local":
            now = self._settings.clock.now()
        else:
            now = (await self._parts.ground.stores[LEASES.name].time()).earliest
        company = placed_seats(self._parts.company.organization())
        return fleet_view(
            config.node_id,
            company,
            nodes=nodes,
            seats=seats,
            duties=duties,
            now=now,
            reported=await self._reported(),
            paused=self._parts.pausing.every(),
        )

    async def _reported(self) -> dict[str, NodeStatus]:
        """Which document each node runs; one that shares none runs what it was started with or given since."""
        parts, node = self._parts, self._settings.config.node_id
        if parts.fleet_company is not None:
            return await parts.fleet_company.reported()
        own = NodeStatus(
            node=node,
            epoch=parts.company.number,
            revision_id=revision_of(parts.company.source().document),
            status="ok",
            posture=parts.status.posture.name,
            reported_at=self._settings.clock.now(),
        )
        return {node: own}

    async def budgets(self) -> BudgetsView:
        """Every token budget."""
        return await self._parts.budgeting.reading.all()

    async def tools(self) -> ToolsView:
        """How the tool servers of the company in force stand on every live node."""
        return await self._parts.fleet_tools.standing()

    @property
    def records(self) -> StoredRecords:
        """The shared records."""
        return StoredRecords(self._parts.ground.stores, self._parts.record_notes)

    async def mailboxes(self, handle: str = "") -> tuple[MailboxView, ...]:
        """Every durable mailbox, or those of one seat."""
        return await mailbox_views(self._parts.ground.queue, handle)

    async def follow(self, on_event: Callable[[str, Event], None]) -> StreamSubscription:
        """Feed every event the company records from now on."""
        return await self._parts.ground.queue.subscribe_stream(topics.stream_subjects(topics.STREAM_EVENTS), on_event)

    def on_draining(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` once when this node begins to drain."""
        self._on_draining.append(call)

        def remove() -> None:
            if call in self._on_draining:
                self._on_draining.remove(call)

        return remove

    def _give_back_stranded(self, subscription: Subscription) -> None:
        if self._draining:
            return
        handle = topics.inbox_handle(subscription.topic)
        if subscription == inbound_subscription():
            self._tasks.start("free_inbound", self._free_inbound())
        elif handle is not None and self._parts.host.epoch_of(handle):
            self._tasks.start("give_back_stranded", self._parts.ground.queue.release_held(subscription))

    async def _free_inbound(self) -> None:
        """Have what a dead node held of the work queue at once where this node is alone; peers might be at work on it.

        Where they are, or where nobody can say, the mailbox's own clock gives it back, within a lease's length.
        """
        try:
            present = await self._parts.leases.held("node")
            others = [lease for lease in present if resource_member(lease.resource) != self._settings.config.node_id]
            if not others:
                await self._parts.ground.queue.release_held(inbound_subscription())
        except Unavailable as error:
            _log.warning("inbound_not_freed", error=str(error))

    def _event(self, body: Body, trace: Trace) -> Event:
        settings = self._settings
        return new_event(body, trace=trace, now=settings.clock.now(), ids=settings.ids, source=OPERATOR)

    async def _record_delivery(self, delivery: InboundDelivery, raw: Event) -> None:
        settings = self._settings
        event = new_event(
            delivery,
            trace=raw.trace,
            now=settings.clock.now(),
            ids=settings.ids,
            event_id=_delivery_id(raw.id),
            source=OPERATOR,
        )
        await self._parts.ground.writes.publish(topics.event_topic(event.type), event)


def _delivery_id(message_id: str) -> str:
    return str(uuid5(_DELIVERIES, message_id))
