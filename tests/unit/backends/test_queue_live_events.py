"""Live events on their way: how many may be, and that none is lost without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats.queue_live_events import LiveEvents
from crewlet.backends.nats.wire import Message, NotDone, Unsubscribe, Wire
from crewlet.base import limits
from crewlet.base.errors import Unavailable

pytestmark = pytest.mark.virtual_time

TOPIC = "events.step"
STORED = b'{"stream":"EVENTS","seq":7}'
REFUSED = b'{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"EVENTS","seq":0}'


class QuietWire(Wire):
    """Takes everything and says nothing before a test has it speak."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.is_up = True
        self._listener: Callable[[Message], None] | None = None
        self._drops: list[Callable[[], None]] = []

    def says(self, payload: bytes, *, to: int = 0, status: str = "") -> None:
        assert self._listener is not None
        self._listener(Message(self.words[to], payload, status=status))

    def drop(self) -> None:
        for each in self._drops:
            each()

    @property
    def connected(self) -> bool:
        return self.is_up

    @property
    def max_payload_bytes(self) -> int:
        raise NotImplementedError

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        raise NotImplementedError

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        if not self.is_up:
            raise NotDone(f"{subject}: the link is down")
        self.words.append(reply)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        self._listener = on_message

        async def unsubscribe() -> None:
            self._listener = None

        return unsubscribe

    def new_inbox(self) -> str:
        return "_INBOX.1"

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        self._drops.append(call)
        return lambda: self._drops.remove(call)

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError


@pytest.fixture
def wire() -> QuietWire:
    return QuietWire()


@pytest.fixture
async def live(wire: QuietWire) -> AsyncIterator[LiveEvents]:
    events = LiveEvents(wire)
    await events.open()
    yield events
    await events.close()


async def losses_after(seconds: float) -> list[dict[str, Any]]:
    """What is told of losses until then."""
    with capture_logs() as told:
        await asyncio.sleep(seconds)
    return [dict(line) for line in told if line["event"] == "live_events_lost"]


async def sent(live: LiveEvents, count: int) -> None:
    for _ in range(count):
        await live.send(TOPIC, b"{}")


async def test_no_more_than_a_bounded_number_wait_for_the_brokers_word(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, limits.LIVE_UNCONFIRMED_MAX)

    with pytest.raises(Unavailable):
        await live.send(TOPIC, b"{}")

    assert len(wire.words) == limits.LIVE_UNCONFIRMED_MAX


async def test_a_word_of_the_broker_makes_room_for_another(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, limits.LIVE_UNCONFIRMED_MAX)

    wire.says(STORED)

    await live.send(TOPIC, b"{}")
    assert live.unconfirmed == limits.LIVE_UNCONFIRMED_MAX


async def test_what_the_broker_stored_is_no_loss(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, 1)
    wire.says(STORED)

    assert await losses_after(60.0) == []


async def test_a_refusal_is_told_in_the_brokers_words(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, 1)
    wire.says(REFUSED)

    [told] = await losses_after(60.0)
    assert told["count"] == 1
    assert "maximum bytes exceeded" in told["error"]


async def test_what_no_stream_takes_is_told(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, 1)
    wire.says(b"", status="503")

    [told] = await losses_after(60.0)
    assert told["count"] == 1
    assert "503" in told["error"]


async def test_an_answer_that_is_none_is_told(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, 1)
    wire.says(b"what?")

    [told] = await losses_after(60.0)
    assert told["count"] == 1


async def test_what_the_broker_never_speaks_of_is_told_and_keeps_no_room(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, 3)
    await asyncio.sleep(limits.BROKER_REQUEST_TIMEOUT_S / 2)
    await sent(live, 1)
    wire.says(STORED, to=1)

    told = await losses_after(limits.BROKER_REQUEST_TIMEOUT_S / 2 + 1.5 * limits.LIVE_LOSSES_TOLD_EVERY_S)

    assert [line["count"] for line in told] == [2]
    assert live.unconfirmed == 1
    assert [line["count"] for line in await losses_after(60.0)] == [1]
    assert live.unconfirmed == 0


async def test_what_went_down_with_the_link_is_told(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, 3)
    wire.drop()

    [told] = await losses_after(60.0)
    assert told["count"] == 3
    assert live.unconfirmed == 0


async def test_losses_are_counted_and_told_once_a_second_at_most(live: LiveEvents, wire: QuietWire) -> None:
    await sent(live, 50)
    for number in range(50):
        wire.says(REFUSED, to=number)

    assert [line["count"] for line in await losses_after(60.0)] == [50]


async def test_what_was_not_handed_over_is_the_callers_to_tell(live: LiveEvents, wire: QuietWire) -> None:
    wire.is_up = False

    with pytest.raises(Unavailable):
        await live.send(TOPIC, b"{}")

    assert live.unconfirmed == 0
    assert await losses_after(60.0) == []


async def test_nothing_is_on_its_way_after_the_close(wire: QuietWire) -> None:
    live = LiveEvents(wire)
    await live.open()
    await live.send(TOPIC, b"{}")

    await live.close()

    with pytest.raises(Unavailable):
        await live.send(TOPIC, b"{}")
    assert len(wire.words) == 1
    assert await losses_after(60.0) == []


async def test_a_close_tells_the_losses_that_were_not_told_yet(wire: QuietWire) -> None:
    live = LiveEvents(wire)
    await live.open()
    await live.send(TOPIC, b"{}")
    wire.says(REFUSED)

    with capture_logs() as told:
        await live.close()

    assert [line["count"] for line in told if line["event"] == "live_events_lost"] == [1]
