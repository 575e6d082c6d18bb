"""An attachment whose unit of work is a drain: collected, cut into partitions, worked one partition after another."""

from __future__ import annotations

from collections.abc import Callable, Collection

import structlog

from crewlet.backends.nats.consumer_settings import came_alone
from crewlet.backends.nats.queue_attachment import QUIESCED, Attachment, AttachmentParts, Held
from crewlet.backends.nats.wire import Message
from crewlet.queue import (
    Batch,
    BatchHandler,
    BatchOptions,
    Defer,
    PartitionKey,
    Subscription,
    partitions_of,
)

__all__ = ["BatchAttachment"]

_log = structlog.get_logger(__name__)


class BatchAttachment(Attachment):
    """Hands over whole drains (E-057).

    What a drain holds is nowhere but at the broker and in here: nothing of it is acknowledged before its partition's
    call has returned, so a crash costs every message of it one delivery and loses none (E-058).
    """

    def __init__(
        self,
        subscription: Subscription,
        stream: str,
        parts: AttachmentParts,
        *,
        handler: BatchHandler,
        partition: PartitionKey,
        options: Callable[[], BatchOptions],
        holds: Collection[str] = (),
    ) -> None:
        super().__init__(subscription, stream, parts, holds=holds)
        self._handler = handler
        self._partition = partition
        self._ask_options = options
        self._options = BatchOptions()
        self._drain: dict[int, Held] = {}
        self._rest: dict[int, Held] = {}
        self._heard: set[int] = set()

    async def _collect(self) -> list[Message]:
        """What is there now, or else the first that comes and what is there with it; then what the linger brings."""
        self._look_up_options()
        drain: list[Message] = []
        # What a drain that collects holds is ours, and not lost with anybody.
        self._in_hand = True
        try:
            drain += await self._pull.more(self._options.max_events)
            if not drain:
                self._in_hand = False
                first = await self._pull.next()
                self._in_hand = True
                if first is None:
                    return []
                drain.append(first)
                # The wait may have been long.
                self._look_up_options()
                if not self._options.linger_s and not came_alone(first.reply):
                    drain += await self._pull.more(self._options.max_events - 1)
            if self._options.linger_s:
                drain += await self._pull.more(self._options.max_events - len(drain), self._options.linger_s)
        except BaseException:
            for message in drain:
                self._take_stray(message)
            raise
        return drain

    async def _work(self, messages: list[Message]) -> None:
        taken = [held for message in messages if (held := self._taken_up(message)) is not None]
        self._drain = {id(held.delivery): held for held in taken}
        self._heard = set()
        self._rest = {**self._drain}
        self._ack_clock.start(self._drain.values())
        why = Defer("the drain was stopped before its turn came")
        try:
            for batch in partitions_of(self.subscription, [held.delivery for held in taken], self._partition):
                if self._holds or self._detached:
                    break
                why = await self._work_partition(batch) or why
            await self._settle(self._undispatched(), why)
            await self._given_back()
        finally:
            self._ack_clock.stop()
            self._drain, self._rest = {}, {}

    async def _work_partition(self, batch: Batch) -> Defer | None:
        """Hand over one partition and settle it; a deferral goes back to the undispatched, which stops the drain."""
        mine = {key: self._rest.pop(key) for key in map(id, batch.deliveries)}
        self._heard |= mine.keys()
        outcome = await self._outcome_of(self._handler(batch), batch.deliveries[0])
        if self._detached:
            return None
        if isinstance(outcome, Defer):
            self._stop_taking(QUIESCED)
            # In the order in which the drain came, so that the head of the mailbox stays what it was.
            self._rest = {key: held for key, held in self._drain.items() if key in self._rest or key in mine}
            return outcome
        await self._settle(mine.values(), outcome)
        for key in mine:
            del self._drain[key]
        return None

    def _was_heard(self, held: Held) -> bool:
        return id(held.delivery) in self._heard

    def _undispatched(self) -> list[Held]:
        rest, self._rest = [*self._rest.values()], {}
        for held in rest:
            del self._drain[id(held.delivery)]
        return rest

    def _look_up_options(self) -> None:
        try:
            self._options = self._ask_options()
        except Exception:  # noqa: BLE001 - supervisor: a caller's function; a seat must not go deaf over its window
            _log.exception("batch_options_failed", topic=self.subscription.topic)
