"""The live stream over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from crewlet.api import ApiServer
from crewlet.base.errors import Unavailable
from crewlet.cli.client import ApiClient
from crewlet.cli.whereabouts import Whereabouts
from crewlet.events.types import AgentTurnProgress
from crewlet.testing import wait_until
from tests.unit.api.small_node import BEARER, TOKEN, Chronicle, SmallNode, config, serving, tight

pytestmark = pytest.mark.slow


@asynccontextmanager
async def _watching(server: ApiServer, *, max_queue: int = 16) -> AsyncGenerator[ClientConnection]:
    url = f"ws://127.0.0.1:{server.port}/ws/stream"
    async with connect(url, additional_headers=BEARER, proxy=None, max_size=None, max_queue=max_queue) as socket:
        yield socket


async def _next(socket: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(5):
        while True:
            frame = json.loads(await socket.recv())
            if frame["kind"] == kind:
                return frame


def _progress(text: str) -> AgentTurnProgress:
    return AgentTurnProgress(turn_id="t-1", agent_handle="ceo", phase="execute", partial_text=text)


async def test_what_is_published_after_the_handshake_arrives_uncut(tmp_path: Path) -> None:
    node, text = SmallNode(), "word " * 200_000
    async with serving(node, config(tmp_path)) as server, _watching(server) as socket:
        node.publish(Chronicle().event(_progress(text)))
        frame = await _next(socket, "event")

    assert set(frame) == {"kind", "data", "ts"}
    assert frame["data"]["partial_text"] == text
    assert (frame["data"]["type"], frame["data"]["trace_id"]) == ("agent_turn_progress", "trace-1")


async def test_the_commands_client_reads_the_stream(tmp_path: Path) -> None:
    node = SmallNode()
    async with (
        serving(node, config(tmp_path)) as server,
        ApiClient(Whereabouts(server.url, TOKEN)) as api,
        api.stream() as frames,
    ):
        node.publish(Chronicle().event(_progress("hi")))
        kinds = [(await anext(frames))["kind"], (await anext(frames))["kind"]]

    assert kinds == ["health", "event"]


async def test_health_comes_at_once_and_then_regularly(tmp_path: Path) -> None:
    settings = config(tmp_path, limits=tight(stream_health_every_s=0.01))
    async with serving(SmallNode(), settings) as server, _watching(server) as socket:
        frames = [json.loads(await socket.recv()) for _ in range(3)]

    assert [(frame["kind"], frame["data"]["node"]) for frame in frames] == [("health", "node-0")] * 3


async def test_a_ping_is_answered(tmp_path: Path) -> None:
    async with serving(SmallNode(), config(tmp_path)) as server, _watching(server) as socket:
        await socket.send('{"kind": "ping"}')

        assert (await _next(socket, "pong"))["data"] == {}


@pytest.mark.parametrize("said", ["hello", '{"kind": "query"}', "[]", b"\xff\xfe", "[" * 20_000])
async def test_what_a_socket_does_not_know_is_answered_as_an_error(tmp_path: Path, said: str | bytes) -> None:
    async with serving(SmallNode(), config(tmp_path)) as server, _watching(server) as socket:
        await socket.send(said)

        assert (await _next(socket, "error"))["data"]["error"] == "bad_request"


async def test_all_sockets_share_one_feed_which_ends_with_the_last(tmp_path: Path) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path)) as server:
        async with _watching(server) as first, _watching(server) as second:
            node.publish(Chronicle().event(_progress("hi")))
            await asyncio.gather(_next(first, "event"), _next(second, "event"))
            during = [feed.closed for feed in node.feeds]
        await wait_until(lambda: node.feeds[0].closed, what="the feed's end")

    assert during == [False]


async def test_a_later_socket_opens_the_feed_again(tmp_path: Path) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path)) as server:
        async with _watching(server):
            pass
        await wait_until(lambda: node.feeds[0].closed, what="the first feed's end")
        async with _watching(server) as socket:
            node.publish(Chronicle().event(_progress("again")))

            assert (await _next(socket, "event"))["data"]["partial_text"] == "again"

    assert len(node.feeds) == 2


async def test_a_slow_socket_loses_the_oldest_and_is_told_how_many(tmp_path: Path) -> None:
    node, sent = SmallNode(), 300
    chronicle, filler = Chronicle(), "x" * 100_000
    settings = config(tmp_path, limits=tight(stream_queue_max=5))
    async with (
        serving(node, settings) as server,
        _watching(server, max_queue=1) as slow,
        _watching(server) as quick,
    ):
        for number in range(sent):
            node.publish(chronicle.event(_progress(f"{number} {filler}")))
            await _next(quick, "event")
        got: list[int] = []
        lost = 0
        while not got or got[-1] < sent - 1:
            frame = json.loads(await asyncio.wait_for(slow.recv(), 5))
            lost += frame["data"]["count"] if frame["kind"] == "dropped" else 0
            if frame["kind"] == "event":
                got.append(int(frame["data"]["partial_text"].split()[0]))

    assert lost > 0
    assert lost + len(got) == sent
    assert got == sorted(got)


async def test_a_feed_that_cannot_be_opened_refuses_the_handshake_and_is_tried_anew(tmp_path: Path) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path)) as server:
        node.broken = Unavailable("no broker")
        with pytest.raises(InvalidStatus) as refused:
            async with _watching(server):
                pass
        node.broken = None
        async with _watching(server) as socket:
            assert (await _next(socket, "health"))["data"]["node"] == "node-0"

    assert (refused.value.response.status_code, refused.value.response.headers["retry-after"]) == (503, "5")


async def test_no_more_sockets_than_the_bound(tmp_path: Path) -> None:
    settings = config(tmp_path, limits=tight(stream_clients_max=1))
    async with serving(SmallNode(), settings) as server, _watching(server):
        with pytest.raises(InvalidStatus) as refused:
            async with _watching(server):
                pass

    assert b"too_many_sockets" in (refused.value.response.body or b"")


async def test_sockets_hear_of_a_drain_and_go_on_watching_it(tmp_path: Path) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path)) as server, _watching(server) as socket:
        node.drain()
        await _next(socket, "draining")
        node.publish(Chronicle().event(_progress("the last turn's words")))

        assert (await _next(socket, "event"))["data"]["partial_text"] == "the last turn's words"


async def test_at_the_stop_sockets_get_what_waits_a_last_frame_and_1001(tmp_path: Path) -> None:
    node = SmallNode()
    server = ApiServer(node, config(tmp_path))
    await server.start()
    async with _watching(server) as socket:
        node.publish(Chronicle().event(_progress("hi")))
        await server.stop(grace_s=2)
        kinds = [json.loads(frame)["kind"] async for frame in socket]

    assert (kinds, socket.close_code) == (["health", "event", "closing"], 1001)
    assert (node.feeds[0].closed, node.to_call) == (True, [])


async def test_a_socket_that_does_not_read_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    node = SmallNode()
    server = ApiServer(node, config(tmp_path))
    await server.start()
    loop = asyncio.get_running_loop()
    chronicle, filler = Chronicle(), "x" * 1_000_000
    async with _watching(server, max_queue=1) as socket:
        for _ in range(40):
            node.publish(chronicle.event(_progress(filler)))
            await asyncio.sleep(0)
        began = loop.time()
        await server.stop(grace_s=0.2)
        took = loop.time() - began
        socket.transport.abort()

    assert took < 2
    assert node.feeds[0].closed
