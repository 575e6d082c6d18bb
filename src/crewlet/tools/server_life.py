"""One life of a tool server: opened, served and closed by one task. Imports the protocol's SDK: import it late."""

from __future__ import annotations

import asyncio
import importlib
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import anyio
import httpx2
import structlog
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT, Implementation

from crewlet import __version__
from crewlet.base import limits
from crewlet.tools.clean_text import Cleaner
from crewlet.tools.contract import ToolResult
from crewlet.tools.result_text import result_of
from crewlet.tools.server_call import ENDED, ServerCall, failed
from crewlet.tools.server_process import ServerProcess
from crewlet.tools.server_spec import ToolServerSpec
from crewlet.tools.stdio_transport import stdio_transport
from crewlet.tools.tool_rows import AdvertisedTool

__all__ = ["ServerLife"]

# The SDK imports these with the first result that has a schema: a quarter of a second, and then on the event loop.
for _late in ("jsonschema.validators", "referencing"):
    importlib.import_module(_late)

_log = structlog.get_logger(__name__)

_SESSION_GONE = "Session terminated"  # The SDK's words for an HTTP server that has forgotten our session.
_UNKNOWN_OUTCOME = (CONNECTION_CLOSED, REQUEST_TIMEOUT, INTERNAL_ERROR)
_LOST = "the server ended during the call, which may or may not have taken effect"


class ServerLife:
    """A session with a server, from its opening to its end; the process, if there is one, is its caller's.

    One task calls :meth:`run`; :meth:`end` may be called by anybody.

    The protocol's sessions must be closed by the task that opened them, in the opposite order; otherwise the scopes
    of the SDK cancel strangers. So everything that has a scope is opened and closed inside :meth:`run`.
    """

    def __init__(
        self,
        spec: ToolServerSpec,
        *,
        process: ServerProcess | None,
        clean: Cleaner,
        calls: asyncio.Queue[ServerCall],
        on_ready: Callable[[list[AdvertisedTool]], None],
    ) -> None:
        self._spec = spec
        self._process = process
        self._clean = clean
        self._calls = calls
        self._on_ready = on_ready
        self._ready = False
        self._asked_to_end = False
        self._lost = ""
        self._strays = 0
        self._whole = anyio.CancelScope()
        self._serving = anyio.CancelScope()

    async def run(self) -> str:
        """Live. The reason why it ended, in words for a person; empty where :meth:`end` was called.

        Never raises because of the server: this is its supervisor.
        """
        error = ""
        self._whole.deadline = anyio.current_time() + self._spec.startup_timeout_s
        with self._whole:
            try:
                await self._open_and_serve()
            except Exception as failure:  # noqa: BLE001 - a server's faults are many, and end this life alone
                error = _words(failure)
        if self._asked_to_end:
            return ""
        if not self._ready and self._whole.cancelled_caught and not self._lost:
            return f"it was not ready within {self._spec.startup_timeout_s:g} s{self._about_strays()}"
        return self._clean(self._lost or error) or ENDED

    def end(self) -> None:
        """Have :meth:`run` close what it opened and return, within bounds; calls under way are answered as failed."""
        self._asked_to_end = True
        self._stop_serving()

    def _lose(self, reason: str) -> None:
        """The wire has ended under us."""
        self._lost = self._lost or reason or ENDED
        self._stop_serving()

    def _on_stray(self) -> None:
        # Some servers greet on stdout, and work; one that never becomes ready may do nothing else.
        self._strays += 1
        if self._strays == 1:
            _log.info("mcp_server_stdout_no_message", server=self._spec.name)

    def _about_strays(self) -> str:
        if not self._strays:
            return ""
        lines = "a line" if self._strays == 1 else f"{self._strays} lines"
        return f"; it printed {lines} to its stdout that are no MCP messages (is it a stdio tool server?)"

    def _stop_serving(self) -> None:
        if not self._ready:
            self._whole.cancel()
            return
        # The session is closed in peace, yet not for ever.
        self._whole.deadline = min(self._whole.deadline, anyio.current_time() + limits.TOOL_SERVER_CLOSE_TIMEOUT_S / 2)
        self._serving.cancel()

    async def _open_and_serve(self) -> None:
        async with self._client() as client:
            tools = await _all_tools(client)
            self._whole.deadline = math.inf
            self._ready = True
            self._on_ready(tools)
            with self._serving:
                async with anyio.create_task_group() as under_way:
                    while True:
                        call = await self._calls.get()
                        under_way.start_soon(self._perform, client, call)

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        info = Implementation(name="crewlet", version=__version__)
        async with AsyncExitStack() as opened:
            if self._process is not None:
                transport = stdio_transport(self._process, self._lose, self._on_stray)
            else:
                http = await opened.enter_async_context(self._http())
                transport = streamable_http_client(
                    self._spec.url, http_client=http, max_sse_event_size=limits.TOOL_SERVER_MESSAGE_MAX_BYTES
                )
            yield await opened.enter_async_context(Client(transport, cache=None, client_info=info))

    def _http(self) -> httpx2.AsyncClient:
        # No bound on reading here: the SDK ends the whole session over it, and each request has its own deadline.
        timeout = httpx2.Timeout(limits.TOOL_SERVER_CONNECT_TIMEOUT_S, read=None)
        return create_mcp_http_client(headers=dict(self._spec.headers), timeout=timeout)

    async def _perform(self, client: Client, call: ServerCall) -> None:
        where = f"{self._spec.name}/{call.tool}"
        scope = anyio.CancelScope(deadline=anyio.current_time() + self._spec.request_timeout_s)
        call.on_abandoned(scope.cancel)
        try:
            if call.answer.cancelled():
                return
            with scope:
                call.reply(await self._ask(client, call, where))
            if scope.cancelled_caught:
                call.reply(failed(where, f"no answer within {self._spec.request_timeout_s:g} s", unknown=True))
        finally:
            call.reply(failed(where, _LOST, unknown=True))

    async def _ask(self, client: Client, call: ServerCall, where: str) -> ToolResult:
        try:
            result = await client.call_tool(call.tool, dict(call.arguments))
        except MCPError as refusal:
            if refusal.message == _SESSION_GONE:
                self._lose("it has forgotten this session")
            words = _LOST if refusal.code == CONNECTION_CLOSED else self._clean(refusal.message)
            return failed(where, words, unknown=refusal.code in _UNKNOWN_OUTCOME)
        except Exception as failure:  # noqa: BLE001 - the supervisor of one call: its faults are the call's alone
            return failed(where, self._clean(_words(failure)), unknown=True)
        return result_of(result, where, self._clean)


async def _all_tools(client: Client) -> list[AdvertisedTool]:
    tools: list[AdvertisedTool] = []
    cursor: str | None = None
    for _ in range(limits.TOOL_LIST_PAGES_MAX):
        page = await client.list_tools(cursor=cursor)
        tools += cast("list[AdvertisedTool]", page.tools)
        cursor = page.next_cursor
        if cursor is None:
            return tools
    raise ValueError(f"its list of tools has more than {limits.TOOL_LIST_PAGES_MAX} pages")


def _words(failure: BaseException) -> str:
    """What went wrong, from the innermost of a group of errors."""
    while isinstance(failure, BaseExceptionGroup):
        failure = cast("BaseExceptionGroup[BaseException]", failure).exceptions[0]
    text = failure.message if isinstance(failure, MCPError) else str(failure)
    return text or type(failure).__name__
