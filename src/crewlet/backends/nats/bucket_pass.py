"""One ordered pass over a bucket: a consumer that the broker pushes from, with keys and values, and then is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from crewlet.backends.nats.bucket_in_force import BucketInForce
from crewlet.backends.nats.bucket_index import BucketIndex
from crewlet.backends.nats.bucket_messages import Marker, Shown, is_marker, place
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, ConsumerConfig, ns
from crewlet.backends.nats.pass_progress import PassProgress
from crewlet.backends.nats.wire import Message, Unsubscribe
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination import Record, Revision

__all__ = ["BucketPass"]

_log = structlog.get_logger(__name__)

_CONTROL: Final = "100"
_LAST_DELIVERED: Final = "Nats-Last-Consumer"
_LAST_PASSED: Final = "Nats-Last-Stream"
_STALLED: Final = "Nats-Consumer-Stalled"
_MISSED_HEARTBEATS: Final = 2.5
_DELETE_AGAIN_AFTER_S: Final = 0.1


class BucketPass:
    """Shows ``on_shown`` every message under the patterns as the broker delivers it, in the order of revisions.

    It goes on behind what stood when it began, until it is closed. It breaks, for good, when a delivery is missing or
    the link drops. The broker slows down to our pace (flow control), so that a large bucket fills no buffer. Whoever
    made it closes it, on every path.
    """

    def __init__(
        self,
        jetstream: JetStream,
        bucket: BucketInForce,
        patterns: Sequence[str],
        on_shown: Callable[[Shown], None],
        *,
        name: str,
        tasks: Tasks,
        heartbeat_s: float,
        headers_only: bool = False,
    ) -> None:
        self._jetstream = jetstream
        self._bucket = bucket
        self._filters = [bucket.subject(pattern) for pattern in patterns]
        self._prefix_length = len(bucket.subject(""))
        self._on_shown = on_shown
        self._name = name
        self._tasks = tasks
        self._heartbeat_s = heartbeat_s
        self._headers_only = headers_only
        self._clock = asyncio.get_running_loop().time
        self._broken = ""
        self._stirred = asyncio.Event()
        self._unsubscribe: Unsubscribe | None = None
        self._unwatch: Callable[[], None] | None = None
        self._asked_for = False
        self._made = False
        self._progress = PassProgress()
        self._delivered_at = 0.0
        self._heard_at = 0.0

    @property
    def position(self) -> Revision:
        """How far the broker has come: everything under the patterns up to here was shown, as its member holds it."""
        return Revision(self._progress.position)

    async def open(self) -> None:
        """Begin. Raises ``Unavailable``; it has to be closed in either case."""
        wire = self._jetstream.wire
        self._unwatch = wire.on_disconnected(lambda: self._break("the link to the broker dropped"))
        inbox = wire.new_inbox()
        self._unsubscribe = await wire.subscribe(inbox, self._on_frame)
        self._asked_for = True
        try:
            info = await self._jetstream.consumer_create(self._bucket.stream, self._settings(inbox), action="create")
        except ApiError as error:
            raise Unavailable(f"the bucket {self._bucket.name} cannot be read: {error.description}") from error
        self._made = True
        self._progress.expect(info.delivered.consumer_seq + info.num_pending)
        self._delivered_at = self._heard_at = self._clock()

    async def wait_end(self, index: asyncio.Future[BucketIndex] | None = None) -> bool:
        """Return once it has shown what stood when it began, or was quiet for too long. Raises ``Unavailable``.

        With an index it goes on until it is level with the leader; says whether it was. What was to come may be gone,
        and then the broker says nothing more: after ``limits.LISTING_QUIET_S`` without a delivery the pass is over,
        though never before the index is there, which makes up for what it did not show.
        """
        if index is not None:
            index.add_done_callback(lambda _: self._stirred.set())
        while True:
            self.check()
            quiet_at = self._delivered_at + limits.LISTING_QUIET_S
            if index is None or index.done():
                goal = 0 if index is None else index.result().newest
                if self._progress.has_shown(goal):
                    return True
                if self._clock() >= quiet_at:
                    _log.info("bucket_pass_quiet", bucket=self._bucket.name, shown=self._progress.delivered)
                    return goal == 0
            await self._wait_stirred(quiet_at if self._clock() < quiet_at else None)

    async def wait_shown(self) -> None:
        """Return once something may have been shown since the last call. Raises ``Unavailable`` once it is broken.

        A consumer that is no more sends no heartbeats; nothing else tells of its end.
        """
        silent_at = self._heard_at + _MISSED_HEARTBEATS * self._heartbeat_s
        if self._clock() >= silent_at:
            self._break("the broker was silent for too long")
        self.check()
        await self._wait_stirred(silent_at)

    def check(self) -> None:
        """Raises ``Unavailable`` once it is broken."""
        if self._broken:
            raise Unavailable(f"the bucket {self._bucket.name} was not read to its end: {self._broken}")

    def stir(self) -> None:
        """Let whoever waits look again."""
        self._stirred.set()

    def give_up(self, why: str) -> None:
        """Break it, for what happened on our side."""
        self._break(why)

    async def close(self) -> None:
        """End it, its subscription and its consumer; harmless when repeated. Goes on where the caller is cancelled."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        self._break("it was closed")
        if unsubscribe is None:
            return
        ending = self._tasks.start("end_of_pass", self._end(unsubscribe))
        try:
            async with asyncio.timeout(limits.LISTING_ENDS_WITHIN_S):
                await asyncio.shield(ending)
        except TimeoutError:
            _log.debug("bucket_pass_ends_late", bucket=self._bucket.name, consumer=self._name)

    def _settings(self, inbox: str) -> ConsumerConfig:
        one = len(self._filters) == 1
        return ConsumerConfig(
            name=self._name,
            deliver_policy="all",
            ack_policy="none",
            filter_subject=self._filters[0] if one else "",
            filter_subjects=[] if one else self._filters,
            deliver_subject=inbox,
            flow_control=True,
            idle_heartbeat=ns(self._heartbeat_s),
            # Should its end not reach the broker: nobody listens on its inbox any more, and then it goes by itself.
            inactive_threshold=ns(limits.LISTING_REAPED_AFTER_S),
            headers_only=self._headers_only,
            num_replicas=1,
            mem_storage=True,
        )

    async def _end(self, unsubscribe: Unsubscribe) -> None:
        if self._asked_for:
            await self._delete()
        await unsubscribe()

    async def _delete(self) -> None:
        try:
            for attempt in range(limits.LISTING_DELETES_MAX):
                if await self._jetstream.consumer_delete(self._bucket.stream, self._name) or self._made:
                    return
                # Given up before it was confirmed, it may still be on its way, behind what deletes it.
                await asyncio.sleep(_DELETE_AGAIN_AFTER_S * 2**attempt)
        except (Unavailable, ApiError) as error:
            _log.debug("bucket_pass_left", bucket=self._bucket.name, consumer=self._name, error=str(error))

    async def _wait_stirred(self, until: float | None) -> None:
        self._stirred.clear()
        try:
            async with asyncio.timeout_at(until):
                await self._stirred.wait()
        except TimeoutError:
            return

    def _on_frame(self, message: Message) -> None:
        if self._broken:
            return
        self._heard_at = self._clock()
        if not message.status:
            self._on_message(message)
        elif message.status == _CONTROL:
            self._on_control(message)
        else:
            self._break(f"the broker says {message.status} {message.description}")

    def _on_message(self, message: Message) -> None:
        at = place(message.reply)
        if at is None or not self._progress.took(at):
            self._break(f"a delivery is missing before number {self._progress.delivered}")
            return
        self._delivered_at = self._heard_at
        key = message.subject[self._prefix_length :]
        if message.headers and is_marker(message.headers):
            self._on_shown(Marker(key, at[1], at[2]))
        else:
            self._on_shown(Record(key, message.payload, at[1], at[2]))
        if self._progress.may_be_over:
            self.stir()

    def _on_control(self, message: Message) -> None:
        stalled = message.headers.get(_STALLED, "")
        answer_to = message.reply or stalled
        if answer_to:
            self._tasks.start("flow_control", self._go_on(answer_to))
        last, passed = message.headers.get(_LAST_DELIVERED, ""), message.headers.get(_LAST_PASSED, "")
        if last.isdecimal() and int(last) != self._progress.delivered:
            self._break(f"the broker delivered {last} messages, and {self._progress.delivered} arrived")
        elif passed.isdecimal() and not stalled and self._progress.passed(int(passed)):
            self.stir()

    async def _go_on(self, subject: str) -> None:
        try:
            await self._jetstream.wire.publish(subject)
        except Unavailable as error:
            self._break(str(error))

    def _break(self, why: str) -> None:
        self._broken = self._broken or why
        self.stir()
