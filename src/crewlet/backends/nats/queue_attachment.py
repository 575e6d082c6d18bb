"""One process's attachment to one mailbox: it fetches when it is ready, runs the handler, reports the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, cast

import structlog

from crewlet import topics
from crewlet.backends.nats.consumer_mailboxes import Mailboxes
from crewlet.backends.nats.consumer_settings import delivery_mark
from crewlet.backends.nats.pull_loop import MailboxDeleted, MailboxMissing, PullLoop, PullTiming
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.backends.nats.queue_settlement import Settlement, headroom
from crewlet.backends.nats.wire import Message, Wire
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import MalformedEvent, decode
from crewlet.queue import Ack, Defer, Delivery, Handler, Nak, Outcome, QueueConfig, Subscription, nak_backoff_s

__all__ = ["QUIESCED", "Attachment"]

_log = structlog.get_logger(__name__)

QUIESCED: Final = "quiesced"
"""The hold that a caller's quiesce and a deferral take."""

_EXTENSIONS_PER_ACK_WAIT: Final = 3


class Attachment:
    """Works one mailbox, one delivery at a time, until it is detached.

    While a handler runs the ack clock of its delivery is started again every third of ``ack_wait_s``: the clock is
    there for holders that died, and a long turn must not run twice because it outlasted it. A detached attachment
    extends nothing, so what its handler still holds comes back when the clock runs out or a successor releases it.

    ``ended`` is told when the mailbox was deleted under us; ``stranded`` when the mailbox holds deliveries that this
    attachment does not have, which for a seat's only holder means that they were lost with a link or a process. In a
    group that several processes share it means nothing: the others are at work.
    """

    def __init__(  # noqa: PLR0913 - built in one place, by the queue
        self,
        subscription: Subscription,
        handler: Handler,
        stream: str,
        *,
        wire: Wire,
        link: LinkWatch,
        mailboxes: Mailboxes,
        settlement: Settlement,
        config: QueueConfig,
        tasks: Tasks,
        ended: Callable[[Attachment], None],
        stranded: Callable[[Subscription], None],
        timing: PullTiming | None = None,
    ) -> None:
        self.subscription = subscription
        self._handler = handler
        self._link = link
        self._mailboxes = mailboxes
        self._settlement = settlement
        self._config = config
        self._tasks = tasks
        self._ended = ended
        self._stranded = stranded
        self._pull = PullLoop(
            wire,
            stream,
            topics.durable_name(subscription.topic, subscription.group),
            strays=self._take_stray,
            quiet=self._look_for_stranded,
            timing=timing,
        )
        self.releasing = asyncio.Lock()
        self._detached = False
        self._holds: set[str] = set()
        self._resumed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._not_asking = asyncio.Event()
        self._not_asking.set()
        self._giving_back: set[asyncio.Task[None]] = set()
        self._backing_off: dict[int, float] = {}
        self._loop_task: asyncio.Task[None] | None = None

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

    async def wait_idle(self) -> None:
        """Return once no handler runs and the last outcome was reported."""
        await self._idle.wait()

    async def detach(self) -> None:
        """End the attachment; a handler that runs goes on alone and its outcome is not reported."""
        self._detached = True
        self._stop_taking(QUIESCED)
        self._resumed.set()
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
            message = await self._fetch()
            if message is None:
                continue
            if self._holds:
                self._take_stray(message)
            else:
                await self._work(message)

    async def _fetch(self) -> Message | None:
        self._not_asking.clear()
        try:
            return await self._pull.next()
        except MailboxDeleted:
            _log.warning("mailbox_deleted", topic=self.subscription.topic, group=self.subscription.group)
            self._detached = True
            self._ended(self)
            return None
        except MailboxMissing:
            await self._make_again()
            return None
        finally:
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

    async def _work(self, message: Message) -> None:
        self._idle.clear()
        try:
            mark = delivery_mark(message.reply)
            assert mark is not None, message.reply
            self._backing_off.pop(mark.stream_seq, None)
            try:
                event = decode(message.payload)
            except MalformedEvent as error:
                await self._settlement.bury(self.subscription, message, mark, str(error))
                return
            every_s = self._config.ack_wait_s / _EXTENSIONS_PER_ACK_WAIT
            extension = _Extension(every_s, partial(self._extend, message))
            try:
                outcome = await self._handle(
                    Delivery(self.subscription, event, headroom(mark.deliveries, self._config))
                )
            finally:
                extension.cancel()
            if self._detached:
                return
            if isinstance(outcome, Defer):
                self._stop_taking(QUIESCED)
            if isinstance(outcome, Nak) and len(self._backing_off) < limits.ACK_PENDING_MAX:
                due = asyncio.get_running_loop().time() + nak_backoff_s(self._config, mark.deliveries)
                self._backing_off[mark.stream_seq] = due
            await self._settlement.settle(self.subscription, message, mark, outcome)
        finally:
            self._idle.set()

    async def _handle(self, delivery: Delivery) -> Outcome:
        try:
            outcome = cast("Outcome | None", await self._handler(delivery))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Something inside the handler was cancelled, not this attachment.
            return self._failed(delivery, "cancelled")
        except Exception as error:  # noqa: BLE001 - supervisor: a failing handler is a nak, whatever it failed with
            return self._failed(delivery, repr(error), error)
        # A handler that returns nothing is done with it (E-032).
        return Ack() if outcome is None else outcome

    def _failed(self, delivery: Delivery, reason: str, error: Exception | None = None) -> Nak:
        _log.warning(
            "handler_failed",
            topic=self.subscription.topic,
            event_id=delivery.event.id,
            headroom=delivery.headroom,
            error=reason,
            exc_info=error,
        )
        return Nak(reason)

    def _extend(self, message: Message) -> bool:
        """Start the delivery's ack clock again; false once nobody may."""
        if self._detached:
            return False
        self._tasks.start("extend", self._settlement.still_working(message))
        return True

    def _take_stray(self, message: Message) -> None:
        """A message that came when it was not wanted any more: back at the head, never held."""
        mark = delivery_mark(message.reply)
        if mark is None:
            return
        outcome = Defer("it arrived as the attachment stopped fetching")
        work = self._settlement.settle(self.subscription, message, mark, outcome)
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
        if count > 0 and self._idle.is_set() and not self._holds:
            _log.info("deliveries_held_elsewhere", topic=self.subscription.topic, count=count)
            self._stranded(self.subscription)


class _Extension:
    """The timer that keeps the ack clock of one running delivery from running out."""

    def __init__(self, every_s: float, extend: Callable[[], bool]) -> None:
        self._every_s = every_s
        self._extend = extend
        self._timer = self._set()

    def cancel(self) -> None:
        self._timer.cancel()

    def _set(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._every_s, self._due)

    def _due(self) -> None:
        if self._extend():
            self._timer = self._set()
