"""One client's attachment to one of the twin's mailboxes: it takes a haul, works its partitions, reports outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, cast

import structlog

from crewlet.backends.memory.queue_line import Line
from crewlet.backends.memory.queue_mail import Held
from crewlet.backends.memory.queue_mailbox import MemoryMailbox
from crewlet.backends.memory.queue_outcomes import headroom
from crewlet.backends.memory.queue_settlement import Settlement
from crewlet.base.tasks import Tasks
from crewlet.events import MalformedEvent, decode
from crewlet.queue import (
    Ack,
    Batch,
    BatchHandler,
    BatchOptions,
    Defer,
    Delivery,
    Handler,
    Nak,
    Outcome,
    PartitionKey,
    QueueConfig,
    Subscription,
    partitions_of,
)

__all__ = ["QUIESCED", "Attachment", "AttachmentParts", "Work", "work_of_one"]

_log = structlog.get_logger(__name__)

QUIESCED: Final = object()
"""Why an attachment stops that its caller quiesced, or whose handler deferred; holds are named by strings."""

_RELEASING: Final = object()
_STOPPED: Final = Defer("the haul was stopped before its turn came")


@dataclass(frozen=True, slots=True)
class Work:
    """What is done with a haul: who works it, what of it belongs together, and how it is collected (E-057)."""

    handler: BatchHandler
    partition: PartitionKey
    options: Callable[[], BatchOptions]


def work_of_one(handler: Handler) -> Work:
    """One delivery at a time: a haul of one, which is one partition."""

    async def work(batch: Batch) -> Outcome:
        return await handler(batch.deliveries[0])

    one = BatchOptions(max_events=1)
    return Work(work, lambda event: event.id, lambda: one)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentParts:
    """What every attachment of one client stands on; ``ended`` is told when a mailbox was deleted under one."""

    line: Line
    settlement: Settlement
    config: QueueConfig
    tasks: Tasks
    ended: Callable[[Attachment], None]


class Attachment:
    """Takes mail while nothing stops it and its line is up, one haul settled before the next is taken.

    Every stop acts at once, before its caller goes on: what was collected, and what of a haul no handler has seen
    when the attachment ends, is back in the mailbox when the call returns. ``stops`` were there before the attach.
    """

    def __init__(
        self, mailbox: MemoryMailbox, work: Work, parts: AttachmentParts, *, stops: Collection[object]
    ) -> None:
        self.subscription: Subscription = mailbox.subscription
        self.node = parts.line.node
        self.releasing = asyncio.Lock()
        self._mailbox = mailbox
        self._work = work
        self._line = parts.line
        self._settlement = parts.settlement
        self._config = parts.config
        self._tasks = parts.tasks
        self._tell_ended = parts.ended
        self._stops: set[object] = {*stops}
        self._ended = False
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._window_open = False
        self._collected: list[Held] = []
        self._undispatched: dict[int, Held] = {}
        self._at_work: list[Held] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to take mail."""
        self._mailbox.attach(self)
        self._task = self._tasks.start(f"attachment:{self.subscription.topic}", self._run())

    def stop(self, why: object) -> None:
        """Take nothing while this reason stands; a collection goes back, a running handler goes on."""
        self._stops.add(why)
        self._mailbox.ask_no_more(self)
        self._give_back(self._collected)

    def go_on(self, why: object) -> None:
        """Take mail again, unless another reason stands."""
        self._stops.discard(why)
        self._news.set()

    async def release(self) -> None:
        """Wait for this attachment's own handler, then give back what anybody else holds of the mailbox."""
        async with self.releasing:
            self.stop(_RELEASING)
            try:
                await self.wait_idle()
                await self._line.reach()
                self._mailbox.release_held()
            finally:
                self.go_on(_RELEASING)

    async def wait_idle(self) -> None:
        """Return once no handler runs and the last outcome was reported."""
        await self._idle.wait()

    async def detach(self) -> None:
        """End it; a handler that runs goes on alone, and its outcome is not reported."""
        self._end()
        self._give_back([*self._collected, *self._undispatched.values()])
        self._mailbox.leave(self)
        task = self._task
        if self._idle.is_set() and task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait([task])

    def crash(self) -> None:
        """End it as a killed process does: its handler stops, and nothing is handed back."""
        self._end()
        self._mailbox.leave(self)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def line_cut(self) -> None:
        """The broker hears nothing of it any more."""
        self._mailbox.lose(self)

    def line_healed(self) -> None:
        """The broker hears of it again."""
        self._mailbox.find([*self._collected, *self._at_work, *self._undispatched.values()])
        self._news.set()

    def wake(self) -> None:
        """There may be mail to take."""
        self._news.set()

    def mailbox_deleted(self) -> None:
        """Somebody deleted the mailbox: the attachment ends with it."""
        _log.warning("mailbox_deleted", topic=self.subscription.topic, group=self.subscription.group)
        self._end()
        self._tell_ended(self)

    @property
    def _stopped(self) -> bool:
        return self._ended or bool(self._stops)

    def _end(self) -> None:
        self._ended = True
        self._news.set()

    async def _run(self) -> None:
        while not self._ended:
            await self._collect()
            if haul := self._collected:
                self._collected = []
                self._idle.clear()
                try:
                    await self._work_off(haul)
                finally:
                    self._idle.set()

    async def _collect(self) -> None:
        """Take what is there, and what comes within the window of the first; nothing is left of it where a stop came.

        The window and the cap are asked for when the first message is there: the wait for it may have been long.
        """
        while not (self._takes() and self._mailbox.has_mail()):
            if self._ended:
                return
            await self._next_news()
        options = self._look_up_options()
        self._collected = self._mailbox.take(self, options.max_events)
        if options.linger_s > 0 and len(self._collected) < options.max_events:
            await self._linger(options)

    async def _linger(self, options: BatchOptions) -> None:
        self._window_open = True
        timer = asyncio.get_running_loop().call_later(options.linger_s, self._close_window)
        try:
            # A stop takes what was collected, and the window with it.
            while self._window_open and self._collected:
                if self._takes():
                    self._collected += self._mailbox.take(self, options.max_events - len(self._collected))
                if len(self._collected) >= options.max_events:
                    return
                await self._next_news()
        finally:
            timer.cancel()
            self._mailbox.ask_no_more(self)

    def _close_window(self) -> None:
        self._window_open = False
        self._news.set()

    def _takes(self) -> bool:
        return not self._stopped and self._line.is_up

    async def _next_news(self) -> None:
        if self._takes():
            self._mailbox.ask(self)
        else:
            # It may have been woken for mail that another can take.
            self._mailbox.ask_no_more(self)
        self._news.clear()
        await self._news.wait()

    async def _work_off(self, haul: list[Held]) -> None:
        known: dict[int, Held] = {}
        deliveries: list[Delivery] = []
        for held in haul:
            if (delivery := await self._delivery_of(held)) is not None:
                deliveries.append(delivery)
                known[id(delivery)] = held
        self._undispatched = {**known}
        for batch in partitions_of(self.subscription, deliveries, self._work.partition):
            if self._stopped:
                break
            self._at_work = [self._undispatched.pop(id(delivery)) for delivery in batch.deliveries]
            outcome = await self._outcome_of(batch)
            if self._ended:
                return
            await self._report(outcome, known)
            self._at_work = []
            if isinstance(outcome, Defer):
                # The rest went back with it; it is over for this haul, though somebody unquiesced meanwhile.
                break
        rest, self._undispatched = [*self._undispatched.values()], {}
        await self._settlement.settle(self._mailbox, rest, _STOPPED, unheard=True)

    async def _report(self, outcome: Outcome, known: dict[int, Held]) -> None:
        if not isinstance(outcome, Defer):
            await self._settlement.settle(self._mailbox, self._at_work, outcome)
            return
        self._stops.add(QUIESCED)
        # In the order in which the haul came, so that the head of the mailbox is what it was.
        mine, rest = {id(held) for held in self._at_work}, {id(held) for held in self._undispatched.values()}
        back = [held for held in known.values() if id(held) in mine | rest]
        self._undispatched = {}
        self._at_work = back
        for held in back:
            was_heard = id(held) in mine
            outcome_of_it = outcome if was_heard else _STOPPED
            await self._settlement.settle(self._mailbox, [held], outcome_of_it, unheard=not was_heard)

    async def _delivery_of(self, held: Held) -> Delivery | None:
        """What a handler is given; bytes of no event are buried alone, whatever budget they have."""
        try:
            event = decode(held.mail.message.payload)
        except MalformedEvent as error:
            await self._settlement.bury(self._mailbox, held, str(error))
            return None
        return Delivery(self.subscription, event, headroom(held.mail.deliveries, self._config))

    async def _outcome_of(self, batch: Batch) -> Outcome:
        try:
            outcome = cast("Outcome | None", await self._work.handler(batch))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Something inside the handler was cancelled, not this attachment.
            return self._failed(batch, "cancelled")
        except Exception as error:  # noqa: BLE001 - supervisor: a failing handler is a nak, whatever it failed with
            return self._failed(batch, repr(error), error)
        # A handler that returns nothing is done with it (E-032).
        return Ack() if outcome is None else outcome

    def _failed(self, batch: Batch, reason: str, error: Exception | None = None) -> Nak:
        _log.warning(
            "handler_failed",
            topic=self.subscription.topic,
            event_id=batch.deliveries[0].event.id,
            headroom=batch.headroom,
            error=reason,
            exc_info=error,
        )
        return Nak(reason)

    def _look_up_options(self) -> BatchOptions:
        try:
            return self._work.options()
        except Exception:  # noqa: BLE001 - supervisor: a caller's function; a seat must not go deaf over its window
            _log.exception("batch_options_failed", topic=self.subscription.topic)
            return BatchOptions()

    def _give_back(self, holdings: list[Held]) -> None:
        self._collected, given = [], [*holdings]
        if self._ended:
            self._undispatched = {}
        self._settlement.give_back(self._mailbox, given, _STOPPED)
