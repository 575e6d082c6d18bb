"""How the tools of the company in force stand on every node: asked of all of them, since each starts its own (S1).

A document is in force before its tool servers have started, and on other nodes than the one that took it. What failed,
and what is not known yet, is told here of what runs now; nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import msgspec

from crewlet.base import limits
from crewlet.node.company_in_force import CompanyInForce
from crewlet.node.company_parts import seat_server_specs, shared_server_specs
from crewlet.node.coverage import Coverage, coverage_of
from crewlet.queue import Answer, EventQueue
from crewlet.tools import ToolHost

__all__ = ["FailedServer", "FleetTools", "NodeTools", "ToolFailure", "ToolsView", "tools_view"]

_SUBJECT: Final = "tools"


class FailedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool server that does not serve: whose it is, empty where all seats share it, and why."""

    name: str
    seat: str = ""
    error: str = ""


class NodeTools(msgspec.Struct, frozen=True, kw_only=True):
    """What one node says: the document that it runs, and how its tools stand by it.

    ``behind``: why it runs no later document. ``starting``: shared servers that were not tried yet. ``seats``: those
    established here whose own servers are the document's, each of them tried.
    """

    number: int
    behind: str = ""
    starting: tuple[str, ...] = ()
    failed: tuple[FailedServer, ...] = ()
    seats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """A tool server that does not serve on a node; ``seat`` is empty where all seats share it."""

    node: str
    server: str
    seat: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsView:
    """The tools of the document with this number. ``pending`` says, in sentences, what is not settled yet.

    What a node that did not answer has is not known: see ``coverage``.
    """

    epoch: int
    failures: tuple[ToolFailure, ...]
    pending: tuple[str, ...]
    coverage: Coverage


class FleetTools:
    """Asks for it and answers. ``alive`` names the live nodes, as far as this node ``me`` knows.

    ``unplaceable``: seats that no live node may run. ``behind``: why this node runs no later document, empty if it
    does.
    """

    def __init__(
        self,
        *,
        queue: EventQueue,
        me: str,
        alive: Callable[[], Collection[str]],
        company: CompanyInForce,
        tools: ToolHost,
        unplaceable: Callable[[], Collection[str]],
        behind: Callable[[], str],
    ) -> None:
        self._queue = queue
        self._me = me
        self._alive = alive
        self._company = company
        self._tools = tools
        self._unplaceable = unplaceable
        self._behind = behind

    async def serve(self, stack: AsyncExitStack) -> None:
        """Answer the peers' questions until ``stack`` ends."""
        served = await self._queue.serve(_SUBJECT, self._answer)
        stack.push_async_callback(served.close)

    async def standing(self) -> ToolsView:
        """How the tools stand now, everywhere. Raises ``Unavailable``."""
        alive = {*self._alive()} | {self._me}
        # This node answers too, like the others.
        answers = await self._queue.scatter(_SUBJECT, b"", timeout_s=limits.FLEET_READ_WAIT_S, expected=len(alive))
        said: dict[str, NodeTools] = {}
        unreadable: dict[str, str] = {}
        for answer in answers:
            try:
                said |= _said(answer)
            except msgspec.MsgspecError as error:
                unreadable[answer.node] = f"unreadable: {error}"
        wanted = [handle for handle in self._with_own_servers() if handle not in self._unplaceable()]
        return tools_view(self._company.number, wanted, said, coverage_of(alive, answers, unreadable))

    def own(self) -> NodeTools:
        """How they stand on this node."""
        source, tools = self._company.source(), self._tools
        shared = shared_server_specs(source)
        seats = [source.organization.agent_seat_by_handle(handle) for handle in self._with_own_servers()]
        own = {seat.handle: seat_server_specs(source, seat) for seat in seats if seat is not None}
        failed = [row for handle, specs in {"": shared, **own}.items() for row in tools.failed(specs, handle)]
        return NodeTools(
            number=self._company.number,
            behind=self._behind(),
            starting=tools.unsettled(shared),
            failed=tuple(FailedServer(name=row.name, seat=row.seat, error=row.error) for row in failed),
            seats=tuple(handle for handle, specs in own.items() if not tools.unsettled(specs, handle)),
        )

    async def _answer(self, _asked: bytes) -> bytes:
        return msgspec.json.encode(self.own())

    def _with_own_servers(self) -> list[str]:
        """The agent seats that have a child of a tool server to themselves."""
        company = self._company.organization()
        own = {server.name for server in company.tool_servers if not server.shared}
        return [seat.handle for seat in company.agent_seats if own & seat.mcp_env.keys()]


def tools_view(number: int, wanted: Sequence[str], said: Mapping[str, NodeTools], coverage: Coverage) -> ToolsView:
    """What the nodes said, by node, of document ``number``, whose seats ``wanted`` have servers of their own. Pure."""
    current = {node: tools for node, tools in said.items() if tools.number >= number}
    there = {handle for tools in current.values() for handle in tools.seats}
    behind = [
        f"{node} still runs document {tools.number}" + (f": {tools.behind}" if tools.behind else "")
        for node, tools in said.items()
        if node not in current
    ]
    starting = [f"{node} still starts {', '.join(tools.starting)}" for node, tools in current.items() if tools.starting]
    waiting = [f"{handle} is not established with its own tools yet" for handle in wanted if handle not in there]
    return ToolsView(
        epoch=number,
        failures=tuple(
            ToolFailure(node=node, server=each.name, seat=each.seat, error=each.error)
            for node, tools in current.items()
            for each in tools.failed
        ),
        pending=(*behind, *starting, *waiting),
        coverage=coverage,
    )


def _said(answer: Answer) -> dict[str, NodeTools]:
    """What one node answered, by its name. Raises ``MsgspecError``."""
    return {} if answer.error else {answer.node: msgspec.json.decode(answer.payload, type=NodeTools)}
