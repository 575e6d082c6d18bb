"""One connection over many links: what is pending fails at once, nothing is written later, nobody goes deaf."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.backends.nats import Connection, EmbeddedBroker, JetStream, connect
from crewlet.backends.nats.jetstream_types import StreamConfig
from crewlet.backends.nats.wire import Message, NoResponders
from crewlet.base import limits
from crewlet.base.errors import PayloadTooLarge, StartRefused, Unavailable
from crewlet.testing import wait_until
from crewlet.testing.brokers import connected_wire
from crewlet.testing.links import LinkProxy, proxied


@pytest.fixture
async def proxy(broker: EmbeddedBroker) -> AsyncIterator[LinkProxy]:
    async with proxied(int(broker.url.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
async def far_wire(broker: EmbeddedBroker, proxy: LinkProxy) -> AsyncIterator[Connection]:
    """A connection through the proxy."""
    connection = await connect(proxy.url, seed=broker.seed)
    yield connection
    await connection.close()


async def echo_on(wire: Connection, subject: str) -> None:
    """Answer each request on ``subject`` with its own payload, from ``wire``."""
    replies: set[asyncio.Task[None]] = set()

    def answer(message: Message) -> None:
        replies.add(asyncio.ensure_future(wire.publish(message.reply, message.payload, headers=message.headers)))

    await wire.subscribe(subject, answer)


async def test_a_request_gets_its_own_reply(wire: Connection) -> None:
    await echo_on(wire, "echo")

    replies = await asyncio.gather(*(wire.request("echo", str(n).encode(), timeout_s=5) for n in range(100)))

    assert [reply.payload for reply in replies] == [str(n).encode() for n in range(100)]


async def test_headers_travel_as_they_are(wire: Connection) -> None:
    await echo_on(wire, "echo")
    headers = {"Traceparent": "00-ab-cd-01", "Who": "Zoë: the second"}

    reply = await wire.request("echo", b"", headers=headers, timeout_s=5)

    assert dict(reply.headers) == headers


async def test_a_request_that_nobody_takes_fails_at_once(wire: Connection) -> None:
    async with asyncio.timeout(1):
        with pytest.raises(NoResponders):
            await wire.request("nobody", timeout_s=5)


async def test_a_request_without_an_answer_is_unknown(wire: Connection) -> None:
    await wire.subscribe("silent", lambda _: None)

    with pytest.raises(Unavailable, match="no answer"):
        await wire.request("silent", timeout_s=0.05)


async def test_what_is_pending_fails_when_the_broker_dies(broker: EmbeddedBroker, wire: Connection) -> None:
    await wire.subscribe("silent", lambda _: None)
    pending = asyncio.gather(*(wire.request("silent", timeout_s=30) for _ in range(50)), return_exceptions=True)
    await wait_until(lambda: wire.pending_requests == 50)

    os.kill(broker.pid, signal.SIGKILL)

    async with asyncio.timeout(2):
        failures = await pending
    assert {type(failure) for failure in failures} == {Unavailable}
    assert wire.pending_requests == 0


async def test_a_request_on_a_dead_link_fails_at_once(broker: EmbeddedBroker, wire: Connection) -> None:
    os.kill(broker.pid, signal.SIGKILL)
    await wait_until(lambda: not wire.connected)

    with pytest.raises(Unavailable):
        await wire.request("anything", timeout_s=30)


@pytest.mark.slow
async def test_ten_thousand_abandoned_requests_leave_nothing_behind(wire: Connection) -> None:
    await wire.subscribe("silent", lambda _: None)
    tasks_before = len(asyncio.all_tasks())

    for _ in range(10):
        requests = [asyncio.ensure_future(wire.request("silent", timeout_s=30)) for _ in range(1000)]
        await wait_until(lambda: wire.pending_requests == 1000)
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
    gc.collect()

    assert wire.pending_requests == 0
    assert len(asyncio.all_tasks()) == tasks_before


async def test_a_message_above_the_limit_is_refused_before_it_is_sent(wire: Connection) -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        await wire.publish("big", b"x" * limits.BROKER_MAX_PAYLOAD_BYTES, headers={"A": "b"})

    assert refused.value.limit == limits.BROKER_MAX_PAYLOAD_BYTES
    assert wire.connected


@pytest.mark.slow
async def test_a_message_at_the_limit_goes_through(wire: Connection) -> None:
    received: asyncio.Queue[int] = asyncio.Queue()
    await wire.subscribe("big", lambda message: received.put_nowait(len(message.payload)))

    await wire.publish("big", b"x" * limits.BROKER_MAX_PAYLOAD_BYTES)

    assert await asyncio.wait_for(received.get(), 10) == limits.BROKER_MAX_PAYLOAD_BYTES


@pytest.mark.slow
async def test_subscriptions_hear_again_after_a_flapping_link(proxy: LinkProxy, far_wire: Connection) -> None:
    heard: list[bytes] = []
    await far_wire.subscribe("news", lambda message: heard.append(message.payload))
    for _ in range(10):
        await wait_until(lambda: far_wire.connected)
        proxy.drop()
        await wait_until(lambda: not far_wire.connected)
    await wait_until(lambda: far_wire.connected)

    await far_wire.publish("news", b"once")
    await wait_until(lambda: heard != [])
    await far_wire.publish("news", b"again")
    await wait_until(lambda: len(heard) > 1)

    assert heard == [b"once", b"again"]


async def test_a_subscription_made_while_the_link_is_down_hears_once_it_is_back(
    proxy: LinkProxy, far_wire: Connection
) -> None:
    proxy.refuse = True
    proxy.drop()
    await wait_until(lambda: not far_wire.connected)
    heard: list[bytes] = []
    await far_wire.subscribe("late", lambda message: heard.append(message.payload))

    proxy.refuse = False
    await wait_until(lambda: far_wire.connected)
    await far_wire.publish("late", b"news")

    await wait_until(lambda: heard == [b"news"])


async def test_an_ended_subscription_hears_nothing_more_on_any_link(proxy: LinkProxy, far_wire: Connection) -> None:
    heard: list[str] = []
    end = await far_wire.subscribe("news.a", lambda _: heard.append("a"))
    await far_wire.subscribe("news.b", lambda _: heard.append("b"))
    await end()
    await end()
    proxy.drop()
    await wait_until(lambda: not far_wire.connected)
    await wait_until(lambda: far_wire.connected)

    await far_wire.publish("news.a")
    await far_wire.publish("news.b")
    await wait_until(lambda: heard != [])

    assert heard == ["b"]


async def test_drops_and_returns_are_told(proxy: LinkProxy, far_wire: Connection) -> None:
    told: list[str] = []
    far_wire.on_disconnected(lambda: told.append("down"))
    stop = far_wire.on_reconnected(lambda: told.append("up"))

    proxy.drop()
    await wait_until(lambda: told == ["down", "up"])
    stop()
    proxy.drop()

    await wait_until(lambda: told == ["down", "up", "down"])


async def test_a_raising_callback_does_not_make_the_connection_deaf(wire: Connection) -> None:
    def fail(_: Message) -> None:
        raise RuntimeError("a fault of ours")

    await wire.subscribe("bad", fail)
    await echo_on(wire, "echo")
    await wire.publish("bad", b"x")

    assert (await wire.request("echo", b"still here", timeout_s=5)).payload == b"still here"


@pytest.mark.slow
async def test_a_link_that_stopped_forwarding_is_given_up_and_replaced(
    proxy: LinkProxy, far_wire: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WIRE_PING_INTERVAL_S", 0.1)
    monkeypatch.setattr(limits, "WIRE_PING_TIMEOUT_S", 0.3)
    monkeypatch.setattr(limits, "WIRE_CONNECT_TIMEOUT_S", 0.3)
    drops: list[str] = []
    far_wire.on_disconnected(lambda: drops.append("down"))
    proxy.freeze()
    # More than the socket takes: closing politely would wait for it for ever.
    await far_wire.publish("anything", b"x" * 8 * 1024 * 1024)

    await wait_until(lambda: drops == ["down"], what="the link's end")
    proxy.drop()
    proxy.thaw()
    await wait_until(lambda: far_wire.connected, what="the next link")

    await echo_on(far_wire, "echo")
    assert (await far_wire.request("echo", b"x", timeout_s=5)).payload == b"x"


@pytest.mark.slow
async def test_a_busy_upload_is_not_taken_for_a_dead_link(
    far_wire: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WIRE_PING_INTERVAL_S", 0.05)
    monkeypatch.setattr(limits, "WIRE_PING_TIMEOUT_S", 0.05)
    drops: list[str] = []
    far_wire.on_disconnected(lambda: drops.append("down"))

    for _ in range(20):
        await far_wire.publish("nobody", b"x" * 16 * 1024 * 1024)

    assert drops == []


@pytest.mark.slow
async def test_a_write_that_failed_at_a_drop_is_not_written_later(
    broker: EmbeddedBroker, proxy: LinkProxy, far_wire: Connection, jetstream: JetStream
) -> None:
    await jetstream.stream_create(StreamConfig(name="log", subjects=["log"]))
    far = JetStream(far_wire, timeout_s=0.2)
    proxy.refuse = True
    proxy.drop()
    await wait_until(lambda: not far_wire.connected)

    for number in range(5):
        with pytest.raises(Unavailable):
            await far.publish("log", str(number).encode())
    proxy.refuse = False
    await wait_until(lambda: far_wire.connected)
    await far.publish("log", b"after")

    info = await jetstream.stream_info("log")
    assert info is not None
    assert info.state.messages == 1


async def test_nobody_at_the_address_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no broker answers"):
        await connect("nats://127.0.0.1:1")


async def test_a_missing_credentials_file_is_named() -> None:
    with pytest.raises(StartRefused, match=r"/nowhere/user\.creds"):
        await connect("nats://127.0.0.1:1", credentials="/nowhere/user.creds")


async def test_a_credentials_file_without_a_login_is_refused(tmp_path: Path) -> None:
    (tmp_path / "user.creds").write_text("nothing of use\n")

    with pytest.raises(StartRefused, match="is not a credentials file"):
        await connect("nats://127.0.0.1:1", credentials=str(tmp_path / "user.creds"))


async def test_one_connection_is_one_client_at_the_broker(broker: EmbeddedBroker, wire: Connection) -> None:
    await wire.subscribe("a", lambda _: None)
    await wire.request("$JS.API.INFO", timeout_s=5)

    async with connected_wire(broker):
        second = await wire.request("$JS.API.INFO", timeout_s=5)

    assert second.payload
