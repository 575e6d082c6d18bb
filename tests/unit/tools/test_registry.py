"""Which tool a name reaches, for one seat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from crewlet.tools import CallContext, ServerSummary, SharedTools, Tool, ToolResult, ToolRow


@dataclass(frozen=True)
class Named:
    row: ToolRow

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        return ToolResult(f"{self.row.server or 'builtin'}:{arguments}")


@dataclass
class Server:
    name: str
    tools: tuple[Tool, ...] = ()
    error: str = ""
    names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        self.tools = tuple(Named(ToolRow(name, "", {}, f"mcp:{self.name}", self.name)) for name in self.names)


def builtin(name: str) -> Named:
    return Named(ToolRow(name, "", {}))


def server(name: str, *names: str, error: str = "") -> Server:
    return Server(name, names=names, error=error)


def test_a_seats_own_tool_beats_a_shared_one() -> None:
    seat = SharedTools(servers=lambda: [server("shared", "post", "read")]).seat(lambda: [server("own", "post")])

    post, read = seat.find("post"), seat.find("read")

    assert post is not None
    assert read is not None
    assert (post.row.server, read.row.server) == ("own", "shared")
    assert [row.name for row in seat.server_tools("shared")] == ["read"]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_servers_that_share_a_name_are_both_told_apart_in_any_order(order: tuple[str, str]) -> None:
    seat = SharedTools(servers=lambda: [server(name, "search") for name in order]).seat()

    assert seat.find("search") is None
    assert [row.name for row in seat.server_tools("a")] == ["a__search"]
    found = seat.find("b__search")
    assert found is not None
    assert (await found.call({"q": 1}, None)).text == "b:{'q': 1}"  # type: ignore[arg-type]


def test_a_built_in_keeps_its_name() -> None:
    seat = SharedTools([builtin("lookup")], lambda: [server("web", "lookup")]).seat()

    found, served = seat.find("lookup"), seat.find("web__lookup")

    assert found is not None
    assert served is not None
    assert not found.row.is_mcp
    assert served.row.is_mcp


def test_two_built_ins_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="lookup"):
        SharedTools([builtin("lookup"), builtin("lookup")])


def test_servers_are_summed_up_by_name_with_why_they_failed() -> None:
    shared = [server("web", "a", "b"), server("down", error="exit code 3")]
    seat = SharedTools(servers=lambda: shared).seat(lambda: [server("own", "c")])

    assert seat.servers() == [
        ServerSummary("down", 0, "exit code 3"),
        ServerSummary("own", 1),
        ServerSummary("web", 2),
    ]


def test_a_seats_own_server_replaces_a_shared_one_of_its_name() -> None:
    seat = SharedTools(servers=lambda: [server("git", "old")]).seat(lambda: [server("git", "new")])

    assert seat.find("old") is None
    assert [row.name for row in seat.server_tools("git")] == ["new"]


def test_a_server_that_came_later_is_seen() -> None:
    servers: list[Server] = []
    seat = SharedTools(servers=lambda: servers).seat()

    servers.append(server("web", "a"))

    assert seat.find("a") is not None
