"""The raw API: typed answers, and elections waited out within the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import pytest

from crewlet.backends.nats import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, ConsumerConfig, StreamConfig
from crewlet.backends.nats.wire import Message, NoResponders, NotDone
from crewlet.base.errors import Unavailable


class ScriptedWire:
    """A wire whose requests are answered from a list; the last answer repeats."""

    connected = True
    max_payload_bytes = 1024

    def __init__(self, *answers: bytes | Unavailable) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        self.asked.append(subject)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Unavailable):
            raise answer
        return Message("reply", answer)

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        raise NotImplementedError

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Callable[[], object]:
        raise NotImplementedError

    def new_inbox(self) -> str:
        raise NotImplementedError

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError


def refusal(err_code: int) -> bytes:
    return msgspec.json.encode({"error": {"code": 503, "err_code": err_code, "description": "no leader"}})


@pytest.mark.virtual_time
async def test_an_election_is_waited_out() -> None:
    wire = ScriptedWire(refusal(10008), refusal(10008), b'{"stream":"s","seq":7}')

    ack = await JetStream(wire, timeout_s=5).publish("subject", b"")  # pyright: ignore[reportArgumentType]

    assert (ack.seq, len(wire.asked)) == (7, 3)


@pytest.mark.virtual_time
@pytest.mark.parametrize("answer", [refusal(10008), NoResponders("nobody listens")])
async def test_an_election_without_end_is_unavailable_and_without_effect(answer: bytes | Unavailable) -> None:
    wire = ScriptedWire(answer)

    with pytest.raises(NotDone):
        await JetStream(wire, timeout_s=5).publish("subject", b"")  # pyright: ignore[reportArgumentType]


@pytest.mark.virtual_time
async def test_a_publish_that_may_have_landed_is_not_sent_again() -> None:
    wire = ScriptedWire(Unavailable("no answer"))

    with pytest.raises(Unavailable):
        await JetStream(wire, timeout_s=5).publish("subject", b"")  # pyright: ignore[reportArgumentType]

    assert len(wire.asked) == 1


@pytest.mark.parametrize("answer", [b"", b"+OK", b"[]", b'{"stream":1}'])
async def test_an_answer_that_cannot_be_read_is_unknown(answer: bytes) -> None:
    with pytest.raises(Unavailable, match="unreadable"):
        await JetStream(ScriptedWire(answer)).publish("subject", b"")  # pyright: ignore[reportArgumentType]


async def test_a_repeat_of_a_message_id_is_stored_once(jetstream: JetStream) -> None:
    await jetstream.stream_create(StreamConfig(name="mail", subjects=["mail"]))

    first = await jetstream.publish("mail", b"a", message_id="one")
    second = await jetstream.publish("mail", b"a", message_id="one")

    assert (first.seq, second.seq, second.duplicate) == (1, 1, True)


async def test_a_stored_message_is_read_as_it_was_sent(jetstream: JetStream) -> None:
    await jetstream.stream_create(StreamConfig(name="mail", subjects=["mail"]))
    await jetstream.publish("mail", b"\x00\xff", headers={"Who": "Zoë: 1"})

    by_subject = await jetstream.last_message("mail", "mail")
    by_seq = await jetstream.message("mail", 1)

    assert by_subject == by_seq
    assert by_subject is not None
    assert (by_subject.data, by_subject.headers) == (b"\x00\xff", {"Who": "Zoë: 1"})
    assert by_subject.time.tzinfo is not None


async def test_what_is_not_there_is_none(jetstream: JetStream) -> None:
    await jetstream.stream_create(StreamConfig(name="mail", subjects=["mail"]))

    assert await jetstream.stream_info("other") is None
    assert await jetstream.consumer_info("mail", "other") is None
    assert await jetstream.last_message("mail", "mail") is None
    assert await jetstream.message("mail", 99) is None
    assert await jetstream.stream_delete("other") is False
    assert await jetstream.consumer_delete("mail", "other") is False


async def test_a_refusal_names_its_reason(jetstream: JetStream) -> None:
    with pytest.raises(ApiError) as refused:
        await jetstream.consumer_create("nowhere", ConsumerConfig(durable_name="a", ack_policy="explicit"))

    assert (refused.value.code, refused.value.err_code) == (404, 10059)


async def test_a_purge_removes_one_subject_alone(jetstream: JetStream) -> None:
    await jetstream.stream_create(StreamConfig(name="mail", subjects=["mail.*"]))
    for subject in ("mail.a", "mail.a", "mail.b"):
        await jetstream.publish(subject, b"")

    removed = await jetstream.stream_purge("mail", subject="mail.a")

    assert removed == 2
    assert await jetstream.last_message("mail", "mail.b") is not None
