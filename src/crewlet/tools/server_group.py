"""The tool servers of one scope, a node or a seat: started together, compared with what is wanted, closed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from crewlet.tools.server import ToolServer
from crewlet.tools.server_spec import ToolServerSpec
from crewlet.tools.server_status import ServerStatus

__all__ = ["ServerGroup"]


class ServerGroup:
    """What runs is changed in one step, before anything is waited for, so that calls of it may overlap."""

    def __init__(self, new_server: Callable[[ToolServerSpec], ToolServer]) -> None:
        self._new_server = new_server
        self._servers: dict[str, ToolServer] = {}
        self._closed = False

    def servers(self) -> Sequence[ToolServer]:
        """Those that are wanted, failed ones included."""
        return tuple(self._servers.values())

    def status(self) -> list[ServerStatus]:
        """A row for each instance."""
        return [server.status() for server in self._servers.values()]

    def failed(self, specs: Sequence[ToolServerSpec]) -> list[ServerStatus]:
        """The rows of those that are one of these and do not serve."""
        return [row for server in self._servers.values() if server.spec in specs and (row := server.status()).failed]

    def unsettled(self, specs: Sequence[ToolServerSpec]) -> tuple[str, ...]:
        """The names of those that are wanted and were not tried yet, and of those that should not be here any more."""
        tried = {server.name for server in self._servers.values() if server.is_attempted and server.spec in specs}
        return tuple(sorted(({spec.name for spec in specs} | self._servers.keys()) - tried))

    async def become(self, specs: Sequence[ToolServerSpec]) -> None:
        """Have exactly these servers, and return once each has started or failed.

        Servers no longer wanted, changed or lost are closed first; the others go on undisturbed. Whoever cancels
        this keeps what was begun, until :meth:`close`.
        """
        if self._closed:
            return
        wanted = {spec.name: spec for spec in specs}
        leaving = [server for server in self._servers.values() if _must_leave(server, wanted.get(server.name))]
        for server in leaving:
            del self._servers[server.name]
        await _close(leaving)
        # Somebody else may have closed or changed the group while we waited.
        coming = [] if self._closed else [spec for spec in wanted.values() if spec.name not in self._servers]
        for spec in coming:
            server = self._servers[spec.name] = self._new_server(spec)
            server.start()
        await asyncio.gather(*(server.wait_attempted() for server in self._servers.values()))

    async def close(self) -> None:
        """Close all, side by side; bounded."""
        self._closed = True
        leaving, self._servers = list(self._servers.values()), {}
        await _close(leaving)


def _must_leave(server: ToolServer, wanted: ToolServerSpec | None) -> bool:
    return wanted is None or wanted != server.spec or server.is_lost


async def _close(servers: Sequence[ToolServer]) -> None:
    await asyncio.gather(*(server.close() for server in servers))
