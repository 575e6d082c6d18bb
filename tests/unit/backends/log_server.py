"""The server's side of the journal's stream, scripted: it keeps what is published, and says what a test has it say."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crewlet import topics
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.log import JetStreamLog
from crewlet.backends.nats.message_headers import header_block
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base.errors import Unavailable
from crewlet.testing.ids import SeededIds

CREATED = "2030-01-01T00:00:00Z"


@dataclass(frozen=True)
class Kept:
    subject: str
    seq: int
    data: bytes
    headers: Mapping[str, str]


class LogServer(Wire):
    """A leader that keeps its word; a test makes it forget, refuse, or answer for a leader that was cut off."""

    def __init__(self) -> None:
        self.kept: list[Kept] = []
        self.last_seq = 0
        self.leader = "member1"
        self.seen_by_cut_off: int | None = None
        self.refusals: list[tuple[int, str]] = []
        self.lands_then: list[bool] = []
        self.goes_away_while_read = False
        self.duplicates_at: int | None = None
        self.asked: list[str] = []
        self.purges: list[dict[str, Any]] = []
        self.max_payload = 1024 * 1024

    def log(self, *, append_s: float = 60.0) -> JetStreamLog:
        return JetStreamLog(JetStream(self), ids=SeededIds(), append_s=append_s)

    def keep(self, seat: str, data: bytes, headers: Mapping[str, str]) -> int:
        self.last_seq += 1
        self.kept.append(Kept(topics.journal(seat), self.last_seq, data, dict(headers)))
        return self.last_seq

    def answered(self) -> list[Kept]:
        """What the leader that answers has."""
        through = self.last_seq if self.seen_by_cut_off is None else self.seen_by_cut_off
        return [kept for kept in self.kept if kept.seq <= through]

    # The wire.

    @property
    def connected(self) -> bool:
        return True

    @property
    def max_payload_bytes(self) -> int:
        return self.max_payload

    def new_inbox(self) -> str:
        return "_INBOX.1"

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        raise NotImplementedError

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        raise NotImplementedError

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        self.asked.append(subject)
        if not subject.startswith("$JS.API"):
            return Message(subject, json.dumps(self._stored(subject, payload, dict(headers or {}))).encode())
        body = json.loads(payload or b"{}")
        return Message(subject, json.dumps(self._told(subject.split(".")[2:-1], body)).encode())

    def _stored(self, subject: str, payload: bytes, headers: dict[str, str]) -> dict[str, object]:
        if self.lands_then:
            if self.lands_then.pop(0):
                self.keep(subject.rpartition(".")[2], payload, headers)
            raise Unavailable("no answer in time")
        if self.refusals:
            err_code, words = self.refusals.pop(0)
            return {"error": {"code": 400, "err_code": err_code, "description": words}}
        if self.duplicates_at is not None:
            return {"stream": topics.STREAM_JOURNAL, "seq": self.duplicates_at, "duplicate": True}
        last = next((kept.seq for kept in reversed(self.kept) if kept.subject == subject), 0)
        if int(headers["Nats-Expected-Last-Subject-Sequence"]) != last:
            return {"error": {"code": 400, "err_code": 10071, "description": f"wrong last sequence: {last}"}}
        return {"stream": topics.STREAM_JOURNAL, "seq": self.keep(subject.rpartition(".")[2], payload, headers)}

    def _told(self, verb: list[str], body: dict[str, Any]) -> dict[str, object]:
        match verb:
            case ["STREAM", "INFO"]:
                last = self.answered()[-1].seq if self.seen_by_cut_off is not None else self.last_seq
                return {
                    "config": {"name": topics.STREAM_JOURNAL},
                    "created": CREATED,
                    "state": {"last_seq": last},
                    "cluster": {"leader": self.leader},
                }
            case ["STREAM", "PURGE"]:
                self.purges.append(body)
                below = body.get("seq", self.last_seq + 1)
                self.kept = [kept for kept in self.kept if kept.subject != body["filter"] or kept.seq >= below]
                return {"purged": 1}
            case _:
                return self._message(body)

    def _message(self, body: dict[str, Any]) -> dict[str, object]:
        if "next_by_subj" in body and self.goes_away_while_read:
            self.kept.clear()
        if "last_by_subj" in body:
            found = [kept for kept in reversed(self.answered()) if kept.subject == body["last_by_subj"]]
        else:
            found = [k for k in self.answered() if k.subject == body["next_by_subj"] and k.seq >= body["seq"]]
        if not found:
            return {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
        return {
            "message": {
                "subject": found[0].subject,
                "seq": found[0].seq,
                "time": CREATED,
                "data": base64.b64encode(found[0].data).decode(),
                "hdrs": base64.b64encode(header_block(found[0].headers)).decode(),
            }
        }
