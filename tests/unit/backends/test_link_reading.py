"""What a link reads: messages in the order in which they came, whatever came between them, wherever it was cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.backends.nats.frames import FrameReader
from crewlet.backends.nats.link import Link
from crewlet.backends.nats.login import Login
from crewlet.testing import wait_until

INFO = b'INFO {"server_id":"x","version":"2.12.0","max_payload":1048576,"headers":true}\r\n'
PINGS = 12


class SpeakingServer:
    """A server that lets everybody in, and says what a test has it say, in pieces."""

    def __init__(self) -> None:
        self.pongs = 0
        self.subscribed = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        assert self._writer is not None
        self._server.close()
        self._writer.close()

    async def say(self, stream: bytes, *, piece_bytes: int) -> None:
        assert self._writer is not None
        for at in range(0, len(stream), piece_bytes):
            self._writer.write(stream[at : at + piece_bytes])
            await self._writer.drain()
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        writer.write(INFO)
        async for line in reader:
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
            elif line == b"PONG\r\n":
                self.pongs += 1
            elif line.startswith(b"SUB"):
                self.subscribed.set()


class Reading:
    """One link to such a server, and the payloads of the messages that it handed on."""

    def __init__(self, server: SpeakingServer, link: Link) -> None:
        self.server = server
        self.link = link
        self.payloads: list[bytes] = []


@pytest.fixture
async def reading() -> AsyncIterator[Reading]:
    server = SpeakingServer()
    url = await server.start()
    link = Link(lambda _: None)
    await link.dial([url], Login(), name="reader")
    reading = Reading(server, link)
    link.subscribe("news", lambda message: reading.payloads.append(message.payload))
    await server.subscribed.wait()
    yield reading
    await link.close()
    await server.close()


def frame(payload: bytes) -> bytes:
    return b"MSG news 1 %d\r\n%b\r\n" % (len(payload), payload)


@pytest.mark.parametrize("piece_bytes", [7, 100, 1 << 20])
async def test_messages_keep_their_order_around_what_is_no_message(reading: Reading, piece_bytes: int) -> None:
    payloads = [b"%d" % number for number in range(300)]
    between = {number: b"PING\r\n" if number % 2 else b"PING\r\n" + INFO for number in range(0, 300, 300 // PINGS)}
    stream = b"".join(between.get(number, b"") + frame(payload) for number, payload in enumerate(payloads))

    await reading.server.say(stream, piece_bytes=piece_bytes)

    await wait_until(lambda: len(reading.payloads) == 300, what="every message")
    assert reading.payloads == payloads
    await wait_until(lambda: reading.server.pongs == PINGS, what="an answer to every ping")


async def test_a_big_message_comes_whole(reading: Reading) -> None:
    payloads = [b"small", b"x" * 300_000, b"\r\nMSG news 1 1\r\n" * 1000, b""]

    await reading.server.say(b"".join(map(frame, payloads)), piece_bytes=9_999)

    await wait_until(lambda: len(reading.payloads) == len(payloads), what="every message")
    assert reading.payloads == payloads


async def test_bytes_that_no_server_says_end_the_link(reading: Reading) -> None:
    await reading.server.say(frame(b"a") + b"MSG news 1 many\r\n" + frame(b"b"), piece_bytes=1 << 20)

    await wait_until(lambda: not reading.link.connected, what="a link that is over")
    assert reading.payloads == [b"a"]


async def test_messages_go_past_the_librarys_read_loop(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the server said before, and however early: the loop costs more than the messages."""
    parsed: list[bytes] = []
    parse = FrameReader.parse

    async def noted(reader: FrameReader, data: bytes = b"") -> None:
        parsed.append(data)
        await parse(reader, data)

    monkeypatch.setattr(FrameReader, "parse", noted)
    await reading.server.say(b"PING\r\n", piece_bytes=6)
    await wait_until(lambda: reading.server.pongs == 1, what="an answer to the ping")

    await reading.server.say(frame(b"a") + frame(b"b"), piece_bytes=20)

    await wait_until(lambda: reading.payloads == [b"a", b"b"], what="both messages")
    assert parsed == [b"PING\r\n"]
