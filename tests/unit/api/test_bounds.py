"""What a client cannot do to the server: dawdle, flood, send too much, leave the port held."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crewlet.api import ApiLimits, ApiServer
from crewlet.api.listening import listen
from crewlet.testing import wait_until
from tests.unit.api.small_node import TOKEN, SmallNode, asking, config, serving, tight

pytestmark = pytest.mark.slow

_HEAD = f"POST /seats/ceo/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
_JSON = "Content-Type: application/json\r\n"


@asynccontextmanager
async def _wire(
    folder: Path, limits: ApiLimits | None = None
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with serving(SmallNode(), config(folder, limits=limits or ApiLimits())) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            yield reader, writer
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """The status and the envelope's code of one response on the wire."""
    async with asyncio.timeout(5):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        body = await reader.readexactly(length)
    return int(head.split(" ")[1]), str(json.loads(body).get("error", ""))


async def _closed(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(5):
        try:
            return await reader.read() == b""
        except ConnectionResetError:
            return True


async def test_headers_that_do_not_come_end_the_connection(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(headers_timeout_s=0.05)) as (reader, _):
        assert await _answer(reader) == (408, "request_timeout")
        assert await _closed(reader)


async def test_headers_byte_by_byte_gain_no_time(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(headers_timeout_s=0.2)) as (reader, writer):
        answering = asyncio.ensure_future(_answer(reader))
        for byte in _HEAD.encode() * 100:
            if answering.done():
                break
            writer.write(bytes([byte]))
            await asyncio.wait({answering}, timeout=0.01)

        assert await answering == (408, "request_timeout")


async def test_the_second_request_of_a_connection_has_its_deadline_too(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(headers_timeout_s=0.1)) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        first = await _answer(reader)
        writer.write(b"GET /hea")

        assert [first, await _answer(reader)] == [(200, ""), (408, "request_timeout")]


async def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(body_timeout_s=0.05)) as (reader, writer):
        writer.write(f"{_HEAD}{_JSON}Content-Length: 100\r\n\r\n{{".encode())

        assert await _answer(reader) == (408, "request_timeout")


async def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(keep_alive_s=0.05)) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await _answer(reader)

        assert await _closed(reader)


async def test_a_body_announced_as_too_large_is_not_read(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(body_max_bytes=10)) as (reader, writer):
        writer.write(f"{_HEAD}{_JSON}Content-Length: 11\r\nExpect: 100-continue\r\n\r\n".encode())

        assert await _answer(reader) == (413, "body_too_large")


async def test_a_body_that_grows_too_large_is_cut(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(body_max_bytes=10)) as (reader, writer):
        writer.write(f"{_HEAD}{_JSON}Transfer-Encoding: chunked\r\n\r\n".encode())
        writer.write(b"6\r\n123456\r\n" * 2)

        assert await _answer(reader) == (413, "body_too_large")


async def test_a_client_that_goes_on_sending_after_its_refusal_is_cut_off(tmp_path: Path) -> None:
    async with _wire(tmp_path, tight(body_max_bytes=10, unread_body_wait_s=0.05)) as (reader, writer):
        writer.write(f"{_HEAD}{_JSON}Content-Length: 1000000\r\n\r\n{{".encode())
        await _answer(reader)

        assert await _closed(reader)


async def test_a_large_body_still_hears_why_it_was_refused(tmp_path: Path) -> None:
    settings = config(tmp_path, limits=tight(body_max_bytes=1000))
    async with serving(SmallNode(), settings) as server, asking(server) as client:
        answer = await client.post("/seats/ceo/messages", json={"text": "x" * 5_000_000})

    assert (answer.status_code, answer.json()) == (
        413,
        {"error": "body_too_large", "message": "the body is larger than 1000 bytes", "limit_bytes": 1000},
    )


async def test_what_is_no_http_is_refused_in_the_envelope(tmp_path: Path) -> None:
    async with _wire(tmp_path) as (reader, writer):
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")

        assert await _answer(reader) == (400, "bad_request")


@pytest.mark.parametrize("upgrade", ["", "Connection: Upgrade\r\nUpgrade: websocket\r\n"])
async def test_a_connection_above_the_bound_is_told_so(tmp_path: Path, upgrade: str) -> None:
    async with (
        serving(SmallNode(), config(tmp_path, limits=tight(connections_max=1))) as server,
        asking(server) as client,
    ):
        await client.get("/health")
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"GET /health HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n".encode())
        answer = await _answer(reader)
        writer.close()

    assert answer == (503, "too_many_connections")


async def test_a_reader_that_stalls_is_cut_off(tmp_path: Path) -> None:
    async with serving(SmallNode(), config(tmp_path, limits=tight(write_stalled_max_s=0.05))) as server:
        _reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        with pytest.raises(ConnectionError):
            await _ask_without_reading(writer)
        writer.close()


async def _ask_without_reading(writer: asyncio.StreamWriter) -> None:
    request = f"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    async with asyncio.timeout(10):
        while True:
            writer.write(request * 100)
            await writer.drain()
            await asyncio.sleep(0.01)


async def test_the_stop_frees_the_port_and_is_harmless_when_repeated(tmp_path: Path) -> None:
    server = ApiServer(SmallNode(), config(tmp_path))
    await server.start()
    port = server.port
    await server.stop(grace_s=1)
    await server.stop(grace_s=1)

    for listener in await listen("127.0.0.1", port):
        listener.close()


async def test_a_request_that_runs_at_the_stop_is_waited_for_and_then_cut(tmp_path: Path) -> None:
    node = SmallNode()
    node.hangs = True
    server = ApiServer(node, config(tmp_path))
    await server.start()
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    body = '{"text": "hi"}'
    writer.write(f"{_HEAD}{_JSON}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    await wait_until(lambda: node.calls > 0, what="the request's arrival")
    began = loop.time()

    await server.stop(grace_s=0.3)

    assert 0.25 < loop.time() - began < 2
    assert await _closed(reader)
    writer.close()


async def test_a_server_that_stops_twice_leaves_no_task(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with serving(SmallNode(), config(tmp_path)) as server, asking(server) as client:
        await client.get("/health")

    assert asyncio.all_tasks() == before
