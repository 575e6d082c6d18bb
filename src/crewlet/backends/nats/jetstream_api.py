"""The raw ``$JS.API``, as the queue and the record store use it: typed, bounded, and answered by leaders only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from math import inf
from typing import Any, Final, TypeVar, cast

import msgspec
import structlog

from crewlet.backends.nats.jetstream_types import (
    CONSUMER_NOT_FOUND,
    MESSAGE_NOT_FOUND,
    STREAM_NOT_FOUND,
    AccountInfo,
    ApiError,
    ConsumerConfig,
    ConsumerInfo,
    PubAck,
    StoredMessage,
    StreamConfig,
    StreamInfo,
    awaits_peers,
)
from crewlet.backends.nats.message_headers import parse_headers
from crewlet.backends.nats.patience import Patience
from crewlet.backends.nats.wire import Message, NoResponders, NotDone, Wire
from crewlet.base import limits
from crewlet.base.errors import Unavailable

__all__ = ["JetStream", "read_answer"]

_log = structlog.get_logger(__name__)
_T = TypeVar("_T")

_NOT_YET: Final = frozenset({10006, 10007, 10008, 10009, 10158})
"""The cluster is not there yet, has no leader for this, is electing one, or is still storing this very message under
the same id: asked again, it may answer."""
_AGAIN_S: Final = limits.API_ASK_AGAIN_S
"""What does the same when it is done twice is asked again where nobody answers: what is being made, or has just lost
its leader, says nothing."""


class JetStream:
    """Requests to JetStream over one wire.

    Each raises ``ApiError`` where the broker said no, and ``Unavailable`` when nobody answered in ``timeout_s``; an
    answer that says only that there is no leader now is asked again until then. A stream that too few members are there
    to keep is asked for again for ``peers_wait_s``.
    """

    def __init__(
        self, wire: Wire, *, timeout_s: float = limits.BROKER_REQUEST_TIMEOUT_S, peers_wait_s: float = 0.0
    ) -> None:
        self._wire = wire
        self._timeout_s = timeout_s
        self._peers_wait_s = peers_wait_s

    @property
    def wire(self) -> Wire:
        """The connection underneath."""
        return self._wire

    async def account_info(self) -> AccountInfo:
        """Whether JetStream is there for us; an ``ApiError`` says that it is not enabled."""
        return await self._ask("INFO", {}, AccountInfo)

    async def stream_create(self, config: StreamConfig) -> StreamInfo:
        """The stream exists as configured; the same again is harmless, another configuration an ``ApiError`` 10058."""
        patience = Patience(self._peers_wait_s)
        while True:
            try:
                info = await self._ask(f"STREAM.CREATE.{config.name}", config, StreamInfo, again_after_s=_AGAIN_S)
            except ApiError as error:
                if not awaits_peers(error) or patience.is_over():
                    raise
            else:
                if patience.waited_s > limits.STREAM_CREATE_SLOW_S:
                    _log.warning("jetstream_stream_slow", stream=config.name, took_s=round(patience.waited_s, 1))
                return info
            if patience.speaks():
                _log.warning("jetstream_stream_awaiting_peers", stream=config.name, copies=config.num_replicas)
            await asyncio.sleep(limits.STREAM_CREATE_PAUSE_S)

    async def stream_update(self, config: StreamConfig) -> StreamInfo:
        """Change a stream's settings; what ``config`` leaves out goes back to the broker's default."""
        return await self._ask(f"STREAM.UPDATE.{config.name}", config, StreamInfo)

    async def stream_change(self, name: str, changes: Mapping[str, object]) -> StreamInfo:
        """Change these settings of a stream; every other one stays, those that this engine does not know too."""
        found = await self._ask(f"STREAM.INFO.{name}", {}, _RawConfig)
        return await self._ask(f"STREAM.UPDATE.{name}", {**found.config, **changes}, StreamInfo)

    async def stream_info(self, name: str, *, subjects_filter: str = "", offset: int = 0) -> StreamInfo | None:
        """The stream as its leader knows it, or ``None`` where there is none."""
        body: dict[str, Any] = {"subjects_filter": subjects_filter, "offset": offset} if subjects_filter else {}
        return await self._ask_for(
            f"STREAM.INFO.{name}", body, StreamInfo, absent=STREAM_NOT_FOUND, again_after_s=_AGAIN_S
        )

    async def stream_names(self) -> list[str]:
        """The names of every stream of the account."""
        pages = self._pages("STREAM.NAMES", _StreamNamesPage, lambda page: page.streams)
        return [*{name: None async for name in pages}]

    async def stream_infos(self) -> list[StreamInfo]:
        """Every stream of the account, as their leaders know them; one without a leader may be missing."""
        pages = self._pages("STREAM.LIST", _StreamInfosPage, lambda page: page.streams)
        return [*{info.config.name: info async for info in pages}.values()]

    async def stream_delete(self, name: str) -> bool:
        """Delete a stream and all it holds; ``False`` where there was none."""
        return await self._ask_for(f"STREAM.DELETE.{name}", {}, _Success, absent=STREAM_NOT_FOUND) is not None

    async def stream_purge(self, name: str, *, subject: str = "", up_to_seq: int = 0) -> int:
        """Remove messages (of ``subject``, below ``up_to_seq``); returns how many."""
        body: dict[str, Any] = {}
        if subject:
            body["filter"] = subject
        if up_to_seq:
            body["seq"] = up_to_seq
        return (await self._ask(f"STREAM.PURGE.{name}", body, _Purged)).purged

    async def consumer_create(self, stream: str, config: ConsumerConfig, *, action: str = "") -> ConsumerInfo:
        """Create or update a consumer; ``action`` ``"create"`` or ``"update"`` insists on one of the two."""
        name = config.name or config.durable_name
        body = {"stream_name": stream, "config": config, "action": action}
        # Two nodes that create one mailbox at the same moment: the broker may answer only one of them.
        again_after_s = _AGAIN_S if config.durable_name and not action else inf
        return await self._ask(f"CONSUMER.CREATE.{stream}.{name}", body, ConsumerInfo, again_after_s=again_after_s)

    async def consumer_change(self, stream: str, name: str, changes: Mapping[str, object]) -> ConsumerInfo:
        """Change these settings of a consumer; every other one stays, those that this engine does not know too.

        Its metadata grows by what ``changes`` names.
        """
        found = (await self._ask(f"CONSUMER.INFO.{stream}.{name}", {}, _RawConfig)).config
        config = {**found, **changes, "metadata": {**found.get("metadata", {}), **_metadata(changes)}}
        body = {"stream_name": stream, "config": config, "action": "update"}
        return await self._ask(f"CONSUMER.CREATE.{stream}.{name}", body, ConsumerInfo)

    async def consumer_info(self, stream: str, name: str) -> ConsumerInfo | None:
        """The consumer as its leader knows it, or ``None`` where there is none."""
        return await self._ask_for(
            f"CONSUMER.INFO.{stream}.{name}", {}, ConsumerInfo, absent=CONSUMER_NOT_FOUND, again_after_s=_AGAIN_S
        )

    async def consumer_delete(self, stream: str, name: str) -> bool:
        """Delete a consumer; ``False`` where there was none."""
        subject = f"CONSUMER.DELETE.{stream}.{name}"
        return await self._ask_for(subject, {}, _Success, absent=CONSUMER_NOT_FOUND) is not None

    async def consumer_names(self, stream: str) -> list[str]:
        """The names of every consumer of a stream."""
        pages = self._pages(f"CONSUMER.NAMES.{stream}", _NamesPage, lambda page: page.consumers)
        return [*{name: None async for name in pages}]

    async def consumer_infos(self, stream: str) -> list[ConsumerInfo]:
        """Every consumer of a stream, settings in force included."""
        pages = self._pages(f"CONSUMER.LIST.{stream}", _InfosPage, lambda page: page.consumers)
        return [*{info.name: info async for info in pages}.values()]

    async def last_message(self, stream: str, subject: str) -> StoredMessage | None:
        """The last message on ``subject``, from the stream's leader; ``None`` where it holds none."""
        return await self._message(stream, {"last_by_subj": subject})

    async def message(self, stream: str, seq: int) -> StoredMessage | None:
        """The message at ``seq``, from the stream's leader; ``None`` where it holds none."""
        return await self._message(stream, {"seq": seq})

    async def message_delete(self, stream: str, seq: int) -> bool:
        """Remove one message; ``False`` where there was none. What it held may stay on the disk until compaction."""
        body = {"seq": seq, "no_erase": True}
        try:
            return (await self._ask(f"STREAM.MSG.DELETE.{stream}", body, _Success)).success
        except ApiError as error:
            # The broker has one code for every deletion that fails: whether it was there is asked.
            if error.err_code == STREAM_NOT_FOUND or await self.message(stream, seq) is None:
                return False
            raise

    async def next_message(self, stream: str, seq: int, subject: str) -> StoredMessage | None:
        """The first message on ``subject`` at ``seq`` or behind it, from the leader; ``None`` where there is none."""
        return await self._message(stream, {"seq": seq, "next_by_subj": subject})

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        message_id: str = "",
        expected_last_subject_seq: int | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> PubAck:
        """Store one message and return once the broker acknowledged it.

        Asked again only where the broker said that nothing was stored. ``Unavailable``: it may have been stored.
        """
        all_headers = dict(headers or {})
        if message_id:
            all_headers["Nats-Msg-Id"] = message_id
        if expected_last_subject_seq is not None:
            all_headers["Nats-Expected-Last-Subject-Sequence"] = str(expected_last_subject_seq)

        async def attempt(left_s: float) -> PubAck:
            reply = await self._wire.request(subject, payload, headers=all_headers, timeout_s=left_s)
            return read_answer(subject, reply.payload, PubAck)

        return await self._until_led(subject, attempt, timeout_s or self._timeout_s)

    async def _message(self, stream: str, body: dict[str, Any]) -> StoredMessage | None:
        answer = await self._ask_for(f"STREAM.MSG.GET.{stream}", body, _MessageAnswer, absent=MESSAGE_NOT_FOUND)
        if answer is None:
            return None
        raw = answer.message
        headers = parse_headers(raw.hdrs) if raw.hdrs else {}
        return StoredMessage(subject=raw.subject, seq=raw.seq, time=raw.time, data=raw.data, headers=headers)

    async def _ask(self, verb: str, body: object, kind: type[_T], *, again_after_s: float = inf) -> _T:
        subject = f"$JS.API.{verb}"
        payload = msgspec.json.encode(body)

        async def attempt(left_s: float) -> _T:
            reply = await self._answer(subject, payload, left_s, again_after_s)
            return read_answer(subject, reply.payload, kind)

        return await self._until_led(subject, attempt, self._timeout_s)

    async def _answer(self, subject: str, payload: bytes, left_s: float, again_after_s: float) -> Message:
        clock = asyncio.get_running_loop().time
        deadline = clock() + left_s
        while deadline - clock() > again_after_s:
            asked = clock()
            try:
                return await self._wire.request(subject, payload, timeout_s=again_after_s)
            except Unavailable:
                # A link that dropped says so at once; only silence is worth the same question.
                if clock() - asked < again_after_s:
                    raise
        return await self._wire.request(subject, payload, timeout_s=deadline - clock())

    async def _ask_for(
        self, verb: str, body: object, kind: type[_T], *, absent: int, again_after_s: float = inf
    ) -> _T | None:
        try:
            return await self._ask(verb, body, kind, again_after_s=again_after_s)
        except ApiError as error:
            if error.err_code == absent:
                return None
            raise

    async def _pages(
        self, verb: str, kind: type[_PageT], items: Callable[[_PageT], list[_T] | None]
    ) -> AsyncIterator[_T]:
        offset, total = 0, 0
        for _ in range(limits.API_PAGES_MAX):
            page = await self._ask(verb, {"offset": offset}, kind)
            gone, total = total - page.total, page.total
            if gone > 0:
                # What stood before this page was deleted since the last one, and what follows has moved up.
                offset = max(offset - gone, 0)
                continue
            found = items(page) or []
            for item in found:
                yield item
            offset += len(found)
            if not found or offset >= page.total:
                return
        raise Unavailable(f"{verb}: more than {limits.API_PAGES_MAX} pages")

    async def _until_led(self, subject: str, attempt: Callable[[float], Awaitable[_T]], timeout_s: float) -> _T:
        clock = asyncio.get_running_loop().time
        deadline, left_s = clock() + timeout_s, timeout_s
        pause_s = limits.API_RETRY_FIRST_S
        while True:
            try:
                return await attempt(left_s)
            except ApiError as error:
                if error.err_code not in _NOT_YET:
                    raise
                reason = error.description
            except NoResponders:
                reason = "nobody listens"
            if clock() + pause_s >= deadline:
                raise NotDone(f"{subject}: {reason}, for {timeout_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.API_RETRY_MAX_S)
            left_s = max(deadline - clock(), pause_s)


class _ErrorBody(msgspec.Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _ErrorAnswer(msgspec.Struct, frozen=True):
    error: _ErrorBody | None = None


class _Success(msgspec.Struct, frozen=True):
    success: bool = False


class _RawConfig(msgspec.Struct, frozen=True):
    config: dict[str, Any]


class _Purged(msgspec.Struct, frozen=True):
    purged: int = 0


class _NamesPage(msgspec.Struct, frozen=True):
    total: int = 0
    consumers: list[str] | None = None


class _StreamNamesPage(msgspec.Struct, frozen=True):
    total: int = 0
    streams: list[str] | None = None


class _StreamInfosPage(msgspec.Struct, frozen=True):
    total: int = 0
    streams: list[StreamInfo] | None = None


class _InfosPage(msgspec.Struct, frozen=True):
    total: int = 0
    consumers: list[ConsumerInfo] | None = None


_PageT = TypeVar("_PageT", _NamesPage, _InfosPage, _StreamNamesPage, _StreamInfosPage)


class _RawMessage(msgspec.Struct, frozen=True):
    subject: str
    seq: int
    time: datetime
    data: bytes = b""
    hdrs: bytes = b""


class _MessageAnswer(msgspec.Struct, frozen=True):
    message: _RawMessage


def _metadata(changes: Mapping[str, object]) -> Mapping[str, str]:
    return cast("Mapping[str, str]", changes.get("metadata", {}))


def read_answer(subject: str, payload: bytes, kind: type[_T]) -> _T:
    """What the broker answered. Raises ``ApiError`` where it said no, ``Unavailable`` where this is none of its."""
    try:
        # An answer that names an error is one, whatever else it carries.
        if b'"error"' in payload:
            failure = msgspec.json.decode(payload, type=_ErrorAnswer).error
            if failure is not None:
                raise ApiError(subject, code=failure.code, err_code=failure.err_code, description=failure.description)
        return msgspec.json.decode(payload, type=kind)
    except msgspec.DecodeError as error:
        # Not an answer of the broker's: what was asked may have happened.
        raise Unavailable(f"{subject}: unreadable answer: {error}") from error
