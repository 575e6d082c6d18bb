"""One process's attachment to one mailbox: it fetches when it is ready, works what came, reports the outcome."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Final, cast

import structlog

from crewlet import topics
from crewlet.backends.nats.consumer_mailboxes import Mailboxes
from crewlet.backends.nats.consumer_settings import DeliveryMark, delivery_mark
from crewlet.backends.nats.pull_loop import PullLoop
from crewlet.backends.nats.pull_requests import MailboxDeleted, MailboxMissing, PullTiming
from crewlet.backends.nats.pull_silence import SilenceWatch
from crewlet.backends.nats.queue_ack_clock import AckClock
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.backends.nats.queue_settlement import Settlement, headroom
from crewlet.backends.nats.wire import Message, Wire
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import MalformedEvent, decode
from crewlet.queue import Ack, Defer, Delivery, Nak, Outcome, QueueConfig, Subscription, nak_backoff_s

__all__ = ["QUIESCED", "Attachment", "AttachmentParts", "Held"]

_log = structlog.get_logger(__name__)

QUIESCED: Final = " quiesced"
"""The hold that a caller's quiesce and a deferral take; no caller's own hold begins with a space."""


@dataclass(frozen=True, slots=True)
class Held:
    """One delivery in our hands: what arrived, its mark, and what a handler is given."""

    message: Message
    mark: DeliveryMark
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentParts:
    """What every attachment of one client stands on.

    ``ended`` is told when the mailbox was deleted under an attachment; ``stranded`` when the mailbox holds deliveries
    that its attachment does not have, which for a seat's only holder means that they were lost with a link or a
    process. In a group that several processes share it means nothing: the others are at work.
    """

    wire: Wire
    link: LinkWatch
    mailboxes: Mailboxes
    settlement: Settlement
    config: QueueConfig
    tasks: Tasks
    ended: Callable[[Attachment], None]
    stranded: Callable[[Subscription], None]
    timing: PullTiming | None = None
    silence: SilenceWatch | None = None


class Attachment(ABC):
    """Works one mailbox until it is detached: one unit of work, settled, before the next is fetched.

    While a unit is worked the ack clocks of what it holds are started again every third of their length: the clock
    is there for holders that died, and a long turn must not run twice because it outlasted it. A detached attachment
    extends nothing, so what its handler still holds comes back when the clock runs out or a successor releases it.

    ``holds`` were taken before the attach: as long as one stands, nothing is fetched.
    """

    def __init__(
        self, subscription: Subscription, stream: str, parts: AttachmentParts, *, holds: Collection[str] = ()
    ) -> None:
        self.subscription = subscription
        self._parts = parts
        self._link = parts.link
        self._mailboxes = parts.mailboxes
        self._settlement = parts.settlement
        self._config = parts.config
        self._tasks = parts.tasks
        self._pull = PullLoop(
            parts.wire,
            stream,
            topics.durable_name(subscription.topic, subscription.group),
            strays=self._take_stray,
            quiet=self._look_for_stranded,
            timing=parts.timing,
            silence=parts.silence,
        )
        self._ack_clock = AckClock(self._config.ack_wait_of(subscription), self._extend)
        self.releasing = asyncio.Lock()
        self._detached = False
        self._holds: set[str] = set()
        self._resumed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._not_asking = asyncio.Event()
        self._not_asking.set()
        self.asking_since: float | None = None
        self._in_hand = False
        self._giving_back: set[asyncio.Task[None]] = set()
        self._backing_off: dict[int, float] = {}
        self._loop_task: asyncio.Task[None] | None = None
        for name in holds:
            self._stop_taking(name)

    @abstractmethod
    async def _collect(self) -> list[Message]:
        """The next unit of work; empty once the pull was stopped. Raises as ``PullLoop.next`` does."""

    @abstractmethod
    async def _work(self, messages: list[Message]) -> None:
        """Handle and settle one unit."""

    def _undispatched(self) -> list[Held]:
        """What a unit holds that no handler has seen, given up: whoever asks hands it back."""
        return []

    def _was_heard(self, held: Held) -> bool:
        """Whether a handler was given what is settled."""
        return True

    def start(self) -> None:
        """Begin to fetch."""
        self._loop_task = self._tasks.start(f"attachment:{self.subscription.topic}", self._supervise())

    async def hold(self, name: str = QUIESCED) -> None:
        """Stop fetching; afterwards no request of ours waits at the broker. A running handler goes on."""
        self._stop_taking(name)
        await self._not_asking.wait()
        await self._given_back()

    def lift(self, name: str = QUIESCED) -> None:
        """Fetch again, unless another hold stands."""
        self._holds.discard(name)
        if not self._holds and not self._detached:
            self._pull.resume()
            self._resumed.set()

    def ask_anew(self) -> None:
        """The broker does not know that we wait: ask again, from a fresh inbox."""
        self._pull.ask_anew()

    async def wait_idle(self) -> None:
        """Return once no handler runs and the last outcome was reported."""
        await self._idle.wait()

    async def detach(self) -> None:
        """End the attachment; a handler that runs goes on alone and its outcome is not reported."""
        self._detached = True
        self._ack_clock.close()
        self._stop_taking(QUIESCED)
        self._resumed.set()
        for held in self._undispatched():
            # Its successor must not wait for a handler of ours that runs on.
            self._take_stray(held.message)
        loop_task = self._loop_task
        if self._idle.is_set() and loop_task is not None and loop_task is not asyncio.current_task():
            loop_task.cancel()
            await asyncio.wait([loop_task])
        await self._pull.close()
        await self._given_back()

    def _stop_taking(self, name: str) -> None:
        self._holds.add(name)
        self._resumed.clear()
        self._pull.stop()

    async def _given_back(self) -> None:
        if self._giving_back:
            await asyncio.wait(self._giving_back)

    async def _supervise(self) -> None:
        failures = 0
        while not self._detached:
            try:
                await self._run()
            except Exception:  # noqa: BLE001 - supervisor: a dead inbox loop is a seat that looks alive and is deaf
                _log.exception("attachment_failed", topic=self.subscription.topic)
                await self._link.settled(failures)
                failures += 1

    async def _run(self) -> None:
        while not self._detached:
            if self._holds:
                await self._resumed.wait()
                continue
            messages = await self._fetch()
            if self._holds:
                for message in messages:
                    self._take_stray(message)
            elif messages:
                self._idle.clear()
                try:
                    await self._work(messages)
                finally:
                    self._idle.set()

    async def _fetch(self) -> list[Message]:
        self._not_asking.clear()
        self.asking_since = asyncio.get_running_loop().time()
        try:
            return await self._collect()
        except MailboxDeleted:
            _log.warning("mailbox_deleted", topic=self.subscription.topic, group=self.subscription.group)
            self._detached = True
            self._ack_clock.close()
            self._parts.ended(self)
            return []
        except MailboxMissing:
            await self._make_again()
            return []
        finally:
            self.asking_since = None
            self._in_hand = False
            self._not_asking.set()

    async def _make_again(self) -> None:
        """Only a deletion that the broker told us of is believed: a seat whose mailbox was lost must not stay deaf."""
        try:
            if await self._mailboxes.recreate_missing(self.subscription):
                _log.error("mailbox_recreated", topic=self.subscription.topic, group=self.subscription.group)
            else:
                await self._link.settled(0)
        except (Unavailable, StartRefused) as error:
            _log.warning("mailbox_unreachable", topic=self.subscription.topic, error=str(error))
            await self._link.settled(2)

    def _taken_up(self, message: Message) -> Held | None:
        """The message as a delivery; one that cannot be read is buried, alone, and costs the others nothing."""
        mark = delivery_mark(message.reply)
        assert mark is not None, message.reply
        self._backing_off.pop(mark.stream_seq, None)
        try:
            event = decode(message.payload)
        except MalformedEvent as error:
            self._give_back(self._settlement.bury(self.subscription, message, mark, str(error)))
            return None
        return Held(message, mark, Delivery(self.subscription, event, headroom(mark.deliveries, self._config)))

    async def _outcome_of(self, call: Awaitable[Outcome], first: Delivery) -> Outcome:
        try:
            outcome = cast("Outcome | None", await call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Something inside the handler was cancelled, not this attachment.
            return self._failed(first, "cancelled")
        except Exception as error:  # noqa: BLE001 - supervisor: a failing handler is a nak, whatever it failed with
            return self._failed(first, repr(error), error)
        # A handler that returns nothing is done with it (E-032).
        return Ack() if outcome is None else outcome

    async def _settle(self, held: Iterable[Held], outcome: Outcome) -> None:
        """Report one outcome for all of ``held``, their reports in flight together."""
        items = [*held]
        if isinstance(outcome, Nak):
            for each in items:
                self._note_backoff(each.mark)
        if len(items) == 1:
            await self._report(items[0], outcome)
            return
        await asyncio.gather(*(self._report(each, outcome) for each in items))

    async def _report(self, held: Held, outcome: Outcome) -> None:
        unheard = not self._was_heard(held)
        await self._settlement.settle(self.subscription, held.message, held.mark, outcome, unheard=unheard)

    def _note_backoff(self, mark: DeliveryMark) -> None:
        if len(self._backing_off) < limits.ACK_PENDING_MAX:
            due = asyncio.get_running_loop().time() + nak_backoff_s(self._config, mark.deliveries)
            self._backing_off[mark.stream_seq] = due

    def _failed(self, first: Delivery, reason: str, error: Exception | None = None) -> Nak:
        _log.warning(
            "handler_failed",
            topic=self.subscription.topic,
            event_id=first.event.id,
            headroom=first.headroom,
            error=reason,
            exc_info=error,
        )
        return Nak(reason)

    def _extend(self, held: Collection[Held]) -> None:
        for each in held:
            self._tasks.start("extend", self._settlement.still_working(each.message))

    def _take_stray(self, message: Message) -> None:
        """A message that came when it was not wanted any more: back at the head, never held."""
        mark = delivery_mark(message.reply)
        if mark is None:
            return
        outcome = Defer("it arrived as the attachment stopped fetching")
        self._give_back(self._settlement.settle(self.subscription, message, mark, outcome, unheard=True))

    def _give_back(self, work: Coroutine[object, object, None]) -> None:
        task = self._tasks.start("give_back", work)
        self._giving_back.add(task)
        task.add_done_callback(self._giving_back.discard)

    def _look_for_stranded(self) -> None:
        self._tasks.start("look_for_stranded", self._tell_stranded())

    async def _tell_stranded(self) -> None:
        try:
            info = await self._mailboxes.info(self.subscription)
        except Unavailable:
            return
        # The broker counts what waits out a backoff as held; what we handed back ourselves is no news.
        now = asyncio.get_running_loop().time()
        self._backing_off = {seq: due for seq, due in self._backing_off.items() if due > now}
        count = 0 if info is None else info.num_ack_pending - len(self._backing_off)
        if count > 0 and self._idle.is_set() and not self._in_hand and not self._holds:
            _log.info("deliveries_held_elsewhere", topic=self.subscription.topic, count=count)
            self._parts.stranded(self.subscription)
