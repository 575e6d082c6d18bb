"""One tool server, whichever lives it has: who calls it needs to know no more than this."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, cast

import structlog

from crewlet.base import limits
from crewlet.base.tasks import Tasks
from crewlet.tools.clean_text import Cleaner, clipped
from crewlet.tools.contract import CallContext, Tool, ToolResult, ToolRow
from crewlet.tools.restarts import Restarts
from crewlet.tools.server_call import ENDED, ServerCall, failed
from crewlet.tools.server_environment import server_environment
from crewlet.tools.server_process import ServerProcess, running_process
from crewlet.tools.server_spec import ToolServerSpec
from crewlet.tools.server_status import ServerStatus
from crewlet.tools.tool_rows import AdvertisedTool, row_of

if TYPE_CHECKING:
    from crewlet.tools.server_life import ServerLife

__all__ = ["ServedTool", "ToolServer"]

_log = structlog.get_logger(__name__)
_LIFE_MODULE: Final = "crewlet.tools.server_life"


@dataclass(frozen=True, slots=True)
class ServedTool:
    """A tool of a server: ``row.name`` is the name that models see, ``remote_name`` the server's own."""

    row: ToolRow
    remote_name: str
    server: ToolServer

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Have the server do it. Every failure is a result with ``is_error``."""
        return await self.server.call(self.remote_name, arguments)


class ToolServer:
    """A server and its owner task, the only one that opens and closes the session (everybody else sends it calls).

    Calls run side by side in the session. A server that ends during a call fails that call, which is never sent
    twice; the next call starts it again and waits for it, unless it ended too often or too recently (``Restarts``).
    One that never started has no tools, so no call comes: start a new ``ToolServer``.
    """

    def __init__(
        self,
        spec: ToolServerSpec,
        *,
        environment: Mapping[str, str],
        seat: str = "",
        secrets: frozenset[str] = frozenset(),
        starts: asyncio.Semaphore | None = None,
    ) -> None:
        self.spec = spec
        self.seat = seat
        self._environment = environment
        self._clean = Cleaner(spec.secrets | secrets)
        self._starts = starts or asyncio.Semaphore()
        self._tasks = Tasks(f"tool_server:{spec.name}")
        self._calls: asyncio.Queue[ServerCall] = asyncio.Queue(limits.TOOL_SERVER_QUEUE_MAX)
        self._outstanding = 0
        self._tools: tuple[Tool, ...] = ()
        self._life: ServerLife | None = None
        self._up_since_s: float | None = None
        self._error = ""
        self._restarts = Restarts()
        self._closing = False
        self._first_attempt = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The server's name in the company document."""
        return self.spec.name

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What it serves, as of its last start; empty if it never started."""
        return self._tools

    @property
    def error(self) -> str:
        """Why it does not serve, in at most 240 bytes; empty where it does."""
        return self._error

    @property
    def is_lost(self) -> bool:
        """Whether it takes a new ``ToolServer`` to have it back: it never started, or ended too often."""
        return self._first_attempt.is_set() and self._up_since_s is None and (not self._tools or self._restarts.gave_up)

    @property
    def is_attempted(self) -> bool:
        """Whether its first start succeeded or failed already."""
        return self._first_attempt.is_set()

    def status(self) -> ServerStatus:
        """How this one instance stands."""
        return ServerStatus(
            name=self.name,
            shared=self.spec.shared,
            started=int(self._up_since_s is not None),
            failed=int(bool(self._error)),
            tools=len(self._tools),
            error=self._error,
            seat=self.seat if self._error else "",
        )

    def start(self) -> None:
        """Begin its first life; returns at once."""
        assert self._owner is None
        self._owner = self._tasks.start("owner", self._own())

    async def wait_attempted(self) -> None:
        """Return once the first start succeeded or failed; ``status`` says which. Bounded by the startup timeout."""
        await self._first_attempt.wait()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolResult:
        """Have it done, at the latest within the startup and the request timeout. Cancelling it cancels the request."""
        where = f"{self.name}/{tool}"
        if self._closing or self._owner is None or self._owner.done():
            return failed(where, "the server was stopped")
        if self._outstanding >= limits.TOOL_SERVER_QUEUE_MAX:
            return failed(where, f"{self._outstanding} calls are waiting for this server; nothing was sent")
        call = ServerCall(tool, arguments)
        self._calls.put_nowait(call)
        self._outstanding += 1
        try:
            return await call.answer
        finally:
            self._outstanding -= 1

    async def close(self) -> None:
        """End it, within ``TOOL_SERVER_CLOSE_TIMEOUT_S``; calls under way are answered as failed."""
        self._closing = True
        owner = self._owner
        if owner is None:
            return
        if self._life is not None:
            self._life.end()
        else:
            owner.cancel()
        await asyncio.wait((owner,), timeout=limits.TOOL_SERVER_CLOSE_TIMEOUT_S)
        if not owner.done():
            _log.warning("mcp_server_close_timeout", server=self.name, seat=self.seat)
        await self._tasks.close()

    async def _own(self) -> None:
        """The owner: one life after the other."""
        try:
            await self._live()
            while not self._closing:
                await self._answer_next()
        finally:
            self._up_since_s = None
            self._first_attempt.set()
            self._refuse_waiting("the server was stopped")

    async def _answer_next(self) -> None:
        """Wait for a call, and start the server for it if it may be started."""
        call = await self._calls.get()
        refusal = self._restarts.refusal(asyncio.get_running_loop().time())
        if refusal:
            call.reply(failed(f"{self.name}/{call.tool}", f"{self._error}; {refusal}"))
            return
        if call.answer.cancelled():
            return
        # Nobody else takes from or, between these two lines, puts into the queue, so the call keeps its place.
        self._calls.put_nowait(call)
        await self._live()

    async def _live(self) -> None:
        """One life, and what follows from how it ended."""
        async with _Slot(self._starts) as slot:
            reason = await self._run_life(slot)
        self._went_down(reason)

    async def _run_life(self, slot: _Slot) -> str:
        """Why it ended; empty where that was wanted."""
        if self.spec.transport == "http":
            return await self._hold_session(None, slot)
        environment = server_environment(self._environment, self.spec.env)
        try:
            async with running_process(self.spec, environment, seat=self.seat, clean=self._clean) as process:
                reason = await self._hold_session(process, slot)
        except OSError as refused:
            return f"it cannot be started: {refused.strerror or refused}"
        return self._with_last_words(reason, process)

    async def _hold_session(self, process: ServerProcess | None, slot: _Slot) -> str:
        loop = asyncio.get_running_loop()
        began_s = loop.time()

        def ready(advertised: list[AdvertisedTool]) -> None:
            slot.leave()
            self._came_up(advertised, now_s=loop.time(), took_s=loop.time() - began_s)

        # The SDK is imported while the process starts.
        life_class = await _life_class()
        self._life = life_class(self.spec, process=process, clean=self._clean, calls=self._calls, on_ready=ready)
        try:
            return "" if self._closing else await self._life.run()
        finally:
            self._life = None

    def _with_last_words(self, reason: str, process: ServerProcess) -> str:
        """The reason with what the process left behind: its exit code if it ended by itself, its last line."""
        tail = process.stderr_tail
        if reason and tail:
            _log.info("server_stderr_tail", server=self.name, seat=self.seat, lines=list(tail))
        if reason == ENDED:
            reason = f"{reason} with exit code {process.exit_code}"
        return f"{reason}: {tail[-1]}" if reason and tail else reason

    def _came_up(self, advertised: list[AdvertisedTool], *, now_s: float, took_s: float) -> None:
        self._tools = tuple(ServedTool(row_of(self.spec, tool, self._clean), tool.name, self) for tool in advertised)
        self._up_since_s = now_s
        self._error = ""
        self._first_attempt.set()
        count = len(self._tools)
        _log.info("mcp_server_started", server=self.name, seat=self.seat, tools=count, seconds=round(took_s, 3))

    def _went_down(self, reason: str) -> None:
        up_since_s, self._up_since_s = self._up_since_s, None
        if not reason:
            _log.info("mcp_server_stopped", server=self.name, seat=self.seat)
            return
        now_s = asyncio.get_running_loop().time()
        lasted_s = 0.0 if up_since_s is None else now_s - up_since_s
        self._error = clipped(reason, limits.TOOL_SERVER_ERROR_MAX_BYTES)
        self._restarts = self._restarts.after_life(lasted_s=lasted_s, now_s=now_s)
        event = "mcp_server_failed" if up_since_s is None else "mcp_server_ended"
        _log.warning(event, server=self.name, seat=self.seat, reason=self._error)
        self._first_attempt.set()
        if up_since_s is None:
            self._refuse_waiting(f"the server did not start: {self._error}")

    def _refuse_waiting(self, reason: str) -> None:
        while not self._calls.empty():
            call = self._calls.get_nowait()
            call.reply(failed(f"{self.name}/{call.tool}", reason))


class _Slot:
    """One of the starts that may be under way at once; left when the server is ready, or at the end."""

    def __init__(self, starts: asyncio.Semaphore) -> None:
        self._starts = starts
        self._held = False

    async def __aenter__(self) -> Self:
        await self._starts.acquire()
        self._held = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Let the next one start."""
        if self._held:
            self._held = False
            self._starts.release()


async def _life_class() -> type[ServerLife]:
    """The class that speaks the protocol. Its SDK takes a second to import, hence late and in a thread."""
    module = sys.modules.get(_LIFE_MODULE)
    if module is None or not hasattr(module, "ServerLife"):
        module = await asyncio.to_thread(importlib.import_module, _LIFE_MODULE)
    return cast("type[ServerLife]", module.ServerLife)
