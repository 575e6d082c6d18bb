"""The tool servers of a node: the shared ones, and the children of each seat that it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from crewlet.base import limits
from crewlet.base.ids import Handle
from crewlet.tools.contract import Tool
from crewlet.tools.registry import SeatTools, SharedTools
from crewlet.tools.server import ToolServer
from crewlet.tools.server_group import ServerGroup
from crewlet.tools.server_spec import ToolServerSpec
from crewlet.tools.server_status import ServerStatus, by_server

__all__ = ["ToolHost"]


class ToolHost:
    """Starts and stops them, at most ``TOOL_SERVER_STARTS_MAX`` at once.

    ``environment`` is the engine's, of which a server sees the allowed part; ``secrets`` are values to keep out of
    every server's results, beside those of its own spec.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        builtins: Iterable[Tool] = (),
        secrets: frozenset[str] = frozenset(),
    ) -> None:
        self._environment = environment
        self._secrets = secrets
        self._starts = asyncio.Semaphore(limits.TOOL_SERVER_STARTS_MAX)
        self._shared = ServerGroup(self._server_of(""))
        self._seats: dict[Handle, ServerGroup] = {}
        self._closed = False
        self.shared = SharedTools(builtins, self._shared.servers)

    async def start_shared(self, specs: Sequence[ToolServerSpec]) -> None:
        """Have exactly these shared servers; return once each has started or failed.

        Called again with other specs it reconciles: what changed, or failed before, is started anew. A server that
        does not start costs its own tools and is told by :meth:`status` and ``mcp_server_failed``.
        """
        await self._shared.become([spec for spec in specs if spec.shared])

    async def open_seat(self, handle: Handle, specs: Sequence[ToolServerSpec]) -> SeatTools:
        """The seat's surface, its own children started (or failed) side by side; called again it reconciles in place.

        ``specs`` are the templates with this seat's ``mcp_env`` (``ToolServerSpec.for_seat``). Cancelled on the way,
        it closes what it began.
        """
        group = self._seats.get(handle)
        is_new = group is None
        if group is None:
            group = ServerGroup(self._server_of(handle))
            if self._closed:
                await group.close()
            else:
                self._seats[handle] = group
        try:
            await group.become([spec for spec in specs if not spec.shared])
        except BaseException:
            if is_new:
                await self.close_seat(handle)
            raise
        return self.shared.seat(group.servers)

    async def close_seat(self, handle: Handle) -> None:
        """End the seat's children, bounded; harmless for a seat that has none."""
        group = self._seats.pop(handle, None)
        if group is not None:
            await group.close()

    def status(self) -> list[ServerStatus]:
        """A row for each server (C-192), by name; the seats' instances of one server are counted together."""
        groups = [self._shared, *(self._seats[handle] for handle in sorted(self._seats))]
        return by_server(row for group in groups for row in group.status())

    def failed(self, specs: Sequence[ToolServerSpec], handle: str = "") -> list[ServerStatus]:
        """Those of these servers that do not serve: of a seat, or without a handle of the shared ones."""
        group = self._group_of(handle)
        return [] if group is None else group.failed(specs)

    def unsettled(self, specs: Sequence[ToolServerSpec], handle: str = "") -> tuple[str, ...]:
        """What keeps a seat's servers, or without a handle the shared ones, from being these, each of them tried.

        By name: what was not tried yet, and what should be gone. A seat without any here has everything to begin with.
        """
        group = self._group_of(handle)
        return tuple(spec.name for spec in specs) if group is None else group.unsettled(specs)

    async def close(self) -> None:
        """End all servers, side by side; bounded."""
        self._closed = True
        handles = list(self._seats)
        await asyncio.gather(self._shared.close(), *(self.close_seat(handle) for handle in handles))

    def _group_of(self, handle: str) -> ServerGroup | None:
        return self._seats.get(Handle(handle)) if handle else self._shared

    def _server_of(self, seat: str) -> _NewServer:
        return _NewServer(self._environment, seat, self._secrets, self._starts)


class _NewServer:
    """Makes the servers of one scope."""

    def __init__(
        self, environment: Mapping[str, str], seat: str, secrets: frozenset[str], starts: asyncio.Semaphore
    ) -> None:
        self._environment = environment
        self._seat = seat
        self._secrets = secrets
        self._starts = starts

    def __call__(self, spec: ToolServerSpec) -> ToolServer:
        return ToolServer(
            spec, environment=self._environment, seat=self._seat, secrets=self._secrets, starts=self._starts
        )
