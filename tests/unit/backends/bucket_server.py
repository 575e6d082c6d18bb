"""The server's side of one bucket, scripted: what its index names, what its pass shows, what its leader answers."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from crewlet.backends.nats.bucket_in_force import BucketInForce
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.records import NatsRecordStore
from crewlet.backends.nats.wire import Message, NotDone, Unsubscribe, Wire
from crewlet.base.errors import Unavailable
from crewlet.testing import VirtualClock
from crewlet.testing.ids import SeededIds

CREATED_AT = datetime(2030, 1, 1, tzinfo=UTC)
BUCKET = BucketInForce(slot="scripted", created_at=CREATED_AT)
REMOVAL = {"KV-Operation": "DEL"}


@dataclass(frozen=True, slots=True)
class Stored:
    """One message: the ``seq`` is its revision, and its time is that many seconds after the stream was made."""

    key: str
    seq: int
    value: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def subject(self) -> str:
        return BUCKET.subject(self.key)

    @property
    def at(self) -> datetime:
        return CREATED_AT + timedelta(seconds=self.seq)


def live(key: str, seq: int) -> Stored:
    return Stored(key, seq, b"%d" % seq)


def marker(key: str, seq: int) -> Stored:
    return Stored(key, seq, b"", REMOVAL)


class BucketServer(Wire):
    """Answers what the script says. A pass shows ``shows`` at once, and then whatever a test has it ``show``.

    ``copies``: how many members hold the bucket; ``newest``: the newest revision that the leader has.
    """

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.last_seq = 100
        self.leader = "member1"
        self.created_at = CREATED_AT
        self.page = 100_000
        self.copies = 1
        self.newest = 0
        self.shows: list[Stored] = []
        self.pending: int | None = None
        self.holds: dict[str, Stored] = {}
        self.index_gate = asyncio.Event()
        self.index_gate.set()
        self.create_gate = asyncio.Event()
        self.create_gate.set()
        self.read_s = 0.0
        self.delete_s = 0.0
        self.lost: Callable[[Stored], Stored | None] | None = None
        self.overtaken = False
        self.drops_behind_a_write = False
        self.refuses: dict[str, tuple[int, int]] = {}
        self.silent: set[str] = set()
        self.asked: list[str] = []
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        self.published: list[str] = []
        self.consumers: dict[str, dict[str, Any]] = {}
        self.subscriptions: dict[str, Callable[[Message], None]] = {}
        self.reading = 0
        self.reading_at_most = 0
        self.up = True
        self._delivered = 0
        self._inboxes = 0
        self._down_calls: list[Callable[[], None]] = []

    def bucket(self, *, dated: bool = True) -> NatsRecordStore:
        """A store of this bucket."""
        return NatsRecordStore(JetStream(self), replace(BUCKET, dated=dated), ids=SeededIds(), clock=VirtualClock())

    def named(self, *keys: str) -> None:
        """The index names these."""
        self.index = {BUCKET.subject(key): 1 for key in keys}

    def verbs(self) -> list[str]:
        """What was asked of the API, in order, without the names."""
        return [_verb(subject) for subject in self.asked]

    def read(self) -> list[str]:
        """The keys that were read from the leader one by one."""
        reads = [body for verb, body in self.bodies if verb == "STREAM.MSG.GET"]
        keys = [body["last_by_subj"].removeprefix(BUCKET.subject("")) for body in reads if "last_by_subj" in body]
        return sorted(key for key in keys if not key.endswith(">"))

    # What the broker does of itself.

    def show(self, stored: Stored, *, pending: int = 7, delivery: int = 0) -> None:
        """Deliver one message to every pass."""
        self._delivered = delivery or self._delivered + 1
        ns = (stored.seq * 1_000_000_000) + int(CREATED_AT.timestamp()) * 1_000_000_000
        mark = f"$JS.ACK.{BUCKET.stream}.c.1.{stored.seq}.{self._delivered}.{ns}.{pending}"
        self._push(Message(stored.subject, stored.value, stored.headers, mark))

    def beat(self, *, delivered: int | None = None, passed: int = 0, stalled: str = "") -> None:
        """Send a heartbeat."""
        said = self._delivered if delivered is None else delivered
        headers = {"Nats-Last-Consumer": str(said), "Nats-Last-Stream": str(passed)}
        if stalled:
            headers["Nats-Consumer-Stalled"] = stalled
        self._push(Message("inbox", b"", headers, status="100", description="Idle Heartbeat"))

    def control(self, status: str, description: str, reply: str = "") -> None:
        """Send another frame without a message."""
        self._push(Message("inbox", b"", {}, reply, status=status, description=description))

    def drop(self) -> None:
        """The link is gone."""
        self.up = False
        for call in [*self._down_calls]:
            call()

    def come_back(self) -> None:
        """The link is there again."""
        self.up = True

    # The wire.

    @property
    def connected(self) -> bool:
        return self.up

    @property
    def max_payload_bytes(self) -> int:
        return 1024 * 1024

    def new_inbox(self) -> str:
        self._inboxes += 1
        return f"_INBOX.{self._inboxes}"

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        self._down_calls.append(call)
        return lambda: self._down_calls.remove(call) if call in self._down_calls else None

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    @property
    def listeners(self) -> int:
        """How many are told of a lost link."""
        return len(self._down_calls)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        self.subscriptions[subject] = on_message

        async def unsubscribe() -> None:
            self.subscriptions.pop(subject, None)

        return unsubscribe

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.published.append(subject)

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        if not self.up:
            raise NotDone(f"{subject}: the link is down")
        self.asked.append(subject)
        if not subject.startswith("$JS.API"):
            return await self._stored(subject, dict(headers or {}), payload, timeout_s)
        verb, body = _verb(subject), json.loads(payload or b"{}")
        self.bodies.append((verb, body))
        if verb in self.silent:
            await asyncio.sleep(timeout_s)
            raise Unavailable(f"{subject}: no answer within {timeout_s:g} s")
        if verb in self.refuses:
            code, err_code = self.refuses[verb]
            answer: dict[str, Any] = {"error": {"code": code, "err_code": err_code, "description": "refused"}}
        else:
            answer = await self._answer(verb, subject, body)
        return Message("reply", json.dumps(answer).encode())

    async def _stored(self, subject: str, headers: dict[str, str], payload: bytes, timeout_s: float) -> Message:
        """Take a write, whatever it expects; where its answer gets lost, ``lost`` says what stands at that moment.

        ``overtaken``: somebody else writes the same key before anything else can be asked.
        """
        key = subject.removeprefix(BUCKET.subject(""))
        self.last_seq += 1
        written = Stored(key, self.last_seq, payload, headers)
        if self.lost is None:
            self.holds[key] = live(key, written.seq + 1) if self.overtaken else written
            if self.drops_behind_a_write:
                self.drop()
            return Message("reply", json.dumps({"stream": BUCKET.stream, "seq": written.seq}).encode())
        standing = self.lost(written)
        self.holds = {} if standing is None else {key: standing}
        await asyncio.sleep(timeout_s)
        raise Unavailable(f"{subject}: no answer within {timeout_s:g} s")

    async def _answer(self, verb: str, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        if verb == "STREAM.INFO":
            return await self._info(body)
        if verb == "CONSUMER.CREATE":
            return await self._create(body["config"])
        if verb == "CONSUMER.DELETE":
            await asyncio.sleep(self.delete_s)
            gone = self.consumers.pop(subject.rpartition(".")[2], None)
            return {"success": True} if gone is not None else _refusal(404, 10014)
        if verb == "STREAM.MSG.GET":
            if "seq" in body:
                (subject,) = [stored.subject for stored in self.holds.values() if stored.seq == body["seq"]] or [""]
                return await self._message(subject)
            return await self._message(body["last_by_subj"])
        assert verb == "STREAM.PURGE", verb
        return {"success": True, "purged": 1}

    async def _info(self, body: dict[str, Any]) -> dict[str, Any]:
        if "subjects_filter" in body:
            await self.index_gate.wait()
        offset = body.get("offset", 0)
        page = dict([*self.index.items()][offset : offset + self.page])
        return {
            "config": {"name": BUCKET.stream, "num_replicas": self.copies},
            "created": self.created_at.isoformat(),
            "state": {"last_seq": self.last_seq, "subjects": page},
            "cluster": {"leader": self.leader},
            "total": len(self.index),
            "ts": self.created_at.isoformat(),
        }

    async def _create(self, config: dict[str, Any]) -> dict[str, Any]:
        await self.create_gate.wait()
        self.consumers[config["name"]] = config
        self._delivered = 0
        pending = len(self.shows) if self.pending is None else self.pending
        asyncio.get_running_loop().call_soon(self._show_all, pending)
        return {
            "stream_name": BUCKET.stream,
            "name": config["name"],
            "config": config,
            "num_pending": pending,
        }

    def _show_all(self, pending: int) -> None:
        for stored in self.shows:
            pending -= 1
            self.show(stored, pending=pending)

    async def _message(self, subject: str) -> dict[str, Any]:
        self.reading += 1
        self.reading_at_most = max(self.reading, self.reading_at_most)
        await asyncio.sleep(self.read_s)
        self.reading -= 1
        newest = live("newest", self.newest) if self.newest else None
        stored = newest if subject.endswith(">") else self.holds.get(subject.removeprefix(BUCKET.subject("")))
        if stored is None:
            return _refusal(404, 10037)
        return _message_answer(stored)

    def _push(self, message: Message) -> None:
        for on_message in [*self.subscriptions.values()]:
            on_message(message)


def _verb(subject: str) -> str:
    return ".".join(token for token in subject.removeprefix("$JS.API.").split(".") if token.isupper())


def _message_answer(stored: Stored) -> dict[str, Any]:
    block = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in stored.headers.items()) + "\r\n"
    return {
        "message": {
            "subject": stored.subject,
            "seq": stored.seq,
            "time": stored.at.isoformat(),
            "data": base64.b64encode(stored.value).decode(),
            "hdrs": base64.b64encode(block.encode()).decode(),
        }
    }


def _refusal(code: int, err_code: int) -> dict[str, Any]:
    return {"error": {"code": code, "err_code": err_code, "description": "refused"}}
