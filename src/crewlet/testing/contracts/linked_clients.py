"""Clients of a real broker, each over a link of its own that a case can cut and spoil."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Generic, TypeVar

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.record_links import RecordLink
from crewlet.testing.links import proxied

__all__ = ["LinkedClients"]

_ClientT = TypeVar("_ClientT")


class LinkedClients(Generic[_ClientT]):
    """What a harness over real brokers does to its clients' links; whoever dials one notes its client here."""

    _cluster: Cluster
    _stack: AsyncExitStack
    _links: dict[_ClientT, RecordLink]

    async def cut(self, *clients: _ClientT) -> None:
        """Their links break, and no new one stands."""
        for client in clients:
            await self._links[client].cut()

    async def mend(self, *clients: _ClientT) -> None:
        """They dial again."""
        for client in clients:
            await self._links[client].mend()

    def lose_reply(self, client: _ClientT) -> None:
        """The link loses it."""
        self._links[client].lose_reply()

    def cut_after_write(self, client: _ClientT) -> None:
        """The link breaks between the two."""
        self._links[client].cut_after_write()

    def withhold(self, client: _ClientT) -> None:
        """The link keeps it."""
        self._links[client].withhold()

    async def deliver(self, client: _ClientT) -> None:
        """The link lets go of it."""
        await self._links[client].deliver()

    async def _dial(self, name: str, *, member: int, root: str) -> RecordLink:
        """A link of its own to one member, whose writes below ``root`` can be spoiled."""
        port = int(self._cluster.member_url(member).rpartition(":")[2])
        proxy = await self._stack.enter_async_context(proxied(port))
        connection = await self._cluster.connect(name, url=proxy.url)
        self._stack.push_async_callback(connection.close)
        return RecordLink(proxy, connection, root=root)
