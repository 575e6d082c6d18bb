"""Takes what arrives from outside, finds whom it is for, and puts a wake on each seat's inbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID, uuid5

import structlog

from crewlet import topics
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, PayloadTooLarge
from crewlet.base.ids import Ids
from crewlet.base.trace import Trace, child_of
from crewlet.events import Event, new_event
from crewlet.events.types import ExternalNotification, NotificationSkipped, RawWebhook
from crewlet.notify.contract import Directory, PayloadRefused, Seat, SkipReason, Valve
from crewlet.notify.prompt import Notice
from crewlet.notify.sources import Sources, namespaced
from crewlet.queue import Ack, Delivery, Outcome, Subscription
from crewlet.tracing import Tracer

__all__ = ["NotificationService", "inbound_subscription", "wake_id"]

_log = structlog.get_logger(__name__)
_WAKES = UUID("0b6f8f3e-58a0-5d0b-9f0a-3c1d5e2a7b40")

Publish = Callable[[str, Event], Awaitable[Event]]


def inbound_subscription() -> Subscription:
    """The fleet-wide work queue of deliveries that nobody has routed yet."""
    return Subscription(topics.NOTIFICATIONS_INBOUND, topics.NOTIFY_INBOUND_GROUP)


def wake_id(raw_id: str, recipient: str) -> str:
    """The id of the wake that one raw delivery becomes for one recipient: the same on each redelivery."""
    return str(uuid5(_WAKES, f"{raw_id}\x00{recipient}"))


class NotificationService:
    """The handler of :func:`inbound_subscription`. A failed publish naks; what was published already has fixed ids."""

    def __init__(
        self,
        *,
        publish: Publish,
        directory: Directory,
        sources: Sources,
        clock: Clock,
        ids: Ids,
        tracer: Tracer | None = None,
        valve: Valve | None = None,
        a_second_max: Callable[[], int] = lambda: 0,
    ) -> None:
        self._publish = publish
        self._directory = directory
        self._sources = sources
        self._valve = valve
        self._a_second_max = a_second_max
        self._clock = clock
        self._ids = ids
        self._tracer = tracer or Tracer(clock, ids)

    async def handle(self, delivery: Delivery) -> Outcome:
        """Route one delivery. Always ``Ack``: what cannot be routed is recorded as skipped, with the reason.

        What fails comes back; where that was the last delivery, it is recorded as skipped too, since whoever sent it
        would wait for ever.
        """
        try:
            return await self._handle(delivery.event)
        except Exception as error:
            if delivery.headroom == 0:
                await self._say_spent(delivery.event, str(error) or type(error).__name__)
            raise

    async def _handle(self, event: Event) -> Outcome:
        raw = event.data
        if not isinstance(raw, RawWebhook):
            await self._skip(event, event.source or "unknown", SkipReason.UNREADABLE, detail=event.type)
            return Ack()
        source = self._sources.source(raw.integration)
        if source is None:
            await self._skip(event, raw.integration, SkipReason.NO_SOURCE, sender=raw.sender)
            return Ack()
        try:
            copies = source.parse(raw, event)
        except PayloadRefused as refused:
            await self._skip(event, raw.integration, SkipReason.REFUSED, detail=str(refused), sender=raw.sender)
            return Ack()
        for copy in copies:
            await self._route(event, raw.integration, copy)
        return Ack()

    async def _route(self, event: Event, integration: str, copy: Notice) -> None:
        seat = self._directory.resolve(copy.recipient)
        if seat is None or not seat.is_agent:
            reason = SkipReason.NO_SEAT if seat is None else SkipReason.HUMAN
            await self._skip(event, integration, reason, recipient=copy.recipient, sender=copy.sender)
            return
        if not await self._is_let_through(seat.handle):
            await self._skip(event, integration, SkipReason.RATE, recipient=copy.recipient, sender=copy.sender)
            return
        wake = new_event(
            self._notification(integration, seat, replace(copy, recipient=seat.handle)),
            trace=self._span_under(event),
            now=self._clock.now(),
            ids=self._ids,
            event_id=wake_id(event.id, seat.handle),
            source=integration,
        )
        try:
            with self._tracer.span("inbox.wake", wake.trace, seat=seat.handle):
                await self._publish(topics.agent_inbox(seat.handle), wake)
        except PayloadTooLarge as error:
            # It will be no smaller next time.
            await self._skip(
                event,
                integration,
                SkipReason.TOO_LARGE,
                detail=str(error),
                recipient=copy.recipient,
                sender=copy.sender,
            )

    async def _is_let_through(self, handle: str) -> bool:
        """Asked last, so that nothing is counted that goes nowhere."""
        return self._valve is None or await self._valve.admits(handle, cap=self._a_second_max())

    def _notification(self, integration: str, seat: Seat, notice: Notice) -> ExternalNotification:
        prompt = self._sources.prompt(integration)
        return ExternalNotification(
            integration=integration,
            agent_handle=seat.handle,
            agent_id=seat.agent_id,
            notification_type=notice.notification_type,
            sender=notice.sender,
            salient_body=prompt.salient_body(notice),
            body=prompt.told(notice),
            metadata=dict(notice.metadata),
            requires_recon=prompt.requires_recon(notice),
            addressed=prompt.addressed(notice),
            reply=prompt.reply(notice),
            partition_key=namespaced(integration, prompt.partition_key(notice)),
            conversation_identity=namespaced(integration, prompt.conversation_identity(notice)),
        )

    async def _say_spent(self, event: Event, detail: str) -> None:
        raw = event.data
        integration, recipient, sender = event.source or "unknown", "", ""
        if isinstance(raw, RawWebhook):
            integration, recipient, sender = raw.integration, raw.recipient, raw.sender
        try:
            await self._skip(event, integration, SkipReason.SPENT, detail=detail, recipient=recipient, sender=sender)
        except CrewletError as error:
            _log.error("given_up_unsaid", event_id=event.id, error=str(error))

    async def _skip(
        self,
        event: Event,
        integration: str,
        reason: SkipReason,
        *,
        detail: str = "",
        recipient: str = "",
        sender: str = "",
    ) -> None:
        level = _log.info if reason is SkipReason.HUMAN else _log.warning
        level("notification_skipped", integration=integration, reason=str(reason), detail=detail, recipient=recipient)
        skipped = new_event(
            NotificationSkipped(
                integration=integration,
                reason=str(reason),
                detail=detail,
                recipient=recipient,
                sender=sender,
                source_event_id=event.id,
            ),
            trace=self._span_under(event),
            now=self._clock.now(),
            ids=self._ids,
            event_id=wake_id(event.id, f"skipped\x00{recipient}"),
            source=integration,
        )
        await self._publish(topics.event_topic(skipped.type), skipped)

    def _span_under(self, event: Event) -> Trace:
        return child_of(event.trace, self._ids)
