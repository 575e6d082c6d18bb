"""A tool server behind a url, built with the official SDK and served on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

from crewlet.testing import wait_until
from crewlet.tools import Hint, ToolHost, ToolServerSpec
from tests.e2e.tools.conftest import CEO
from tests.e2e.tools.test_calls import called

pytestmark = pytest.mark.slow


def board() -> MCPServer:
    server: MCPServer = MCPServer("web")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def whoami(context: Context) -> str:  # pyright: ignore[reportUnusedFunction]
        headers = context.headers or {}
        return headers.get("authorization", "nobody")

    @server.tool()
    async def hangs() -> str:  # pyright: ignore[reportUnusedFunction]
        await asyncio.Event().wait()
        return ""

    return server


class Web:
    """The server on a port of its own, to be stopped and started."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    async def start(self) -> None:
        config = uvicorn.Config(board().streamable_http_app(), log_config=None, timeout_graceful_shutdown=1, ws="none")
        self._server = uvicorn.Server(config)
        self._task = asyncio.get_running_loop().create_task(self._server.serve([self._socket]))
        await wait_until(lambda: self._server.started)

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._task
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", self.port))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web()
    await web.start()
    yield web
    await web.stop()
    web.close()


def spec(web: Web, *, request_timeout_s: float = 10) -> ToolServerSpec:
    return ToolServerSpec(
        name="web",
        transport="http",
        url=f"http://127.0.0.1:{web.port}/mcp",
        headers={"Authorization": "Bearer of-the-node"},
        request_timeout_s=request_timeout_s,
    )


async def test_an_http_server_is_called_with_its_headers(web: Web, host: ToolHost) -> None:
    await host.start_shared([spec(web)])
    tools = await host.open_seat(CEO, [])

    result = await called(tools, "whoami")

    assert result.text == "Bearer of-the-node"
    assert [row.annotations.read_only for row in tools.server_tools("web")] == [Hint.YES, Hint.UNKNOWN]


async def test_a_seats_headers_take_the_place_of_the_nodes(web: Web, host: ToolHost) -> None:
    template = spec(web)
    tools = await host.open_seat(CEO, [template.for_seat({"Authorization": "Bearer of-the-ceo"})])

    assert (await called(tools, "whoami")).text == "Bearer of-the-ceo"


async def test_a_call_over_http_that_hangs_fails_after_the_request_timeout(web: Web, host: ToolHost) -> None:
    await host.start_shared([spec(web, request_timeout_s=0.3)])
    tools = await host.open_seat(CEO, [])

    result = await called(tools, "hangs")

    assert result.unknown
    assert result.text == "MCP tool error (web/hangs): no answer within 0.3 s"
    assert not (await called(tools, "whoami")).is_error


async def test_an_http_server_that_was_away_serves_again(web: Web, host: ToolHost) -> None:
    await host.start_shared([spec(web)])
    tools = await host.open_seat(CEO, [])
    await web.stop()

    away = await called(tools, "whoami")
    await web.start()
    back = await called(tools, "whoami")

    assert away.is_error
    assert away.text.startswith("MCP tool error (web/whoami): ")
    assert back.text == "Bearer of-the-node"
