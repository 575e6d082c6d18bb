"""Starting, failing, ending and coming back: what a tool server's lives cost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from crewlet.testing import wait_until
from crewlet.tools import ToolHost
from crewlet.tools.server import ToolServer
from tests.e2e.tools.conftest import CEO, PATH, below, odd
from tests.e2e.tools.test_calls import called, opened

pytestmark = pytest.mark.slow


async def test_a_server_that_exits_at_start_costs_its_own_tools_and_says_why(host: ToolHost) -> None:
    await host.start_shared([odd("good"), odd("bad", "exits")])
    tools = await host.open_seat(CEO, [])

    bad, good = tools.servers()

    assert (good.name, good.tools, good.failed) == ("good", 11, "")
    assert (bad.name, bad.tools) == ("bad", 0)
    assert bad.failed == "it ended with exit code 3: the token is missing"


async def test_a_command_that_does_not_exist_is_named(host: ToolHost) -> None:
    spec = odd("gone")

    await host.start_shared([type(spec)(name="gone", command="no-such-program")])

    assert host.status()[0].error == (
        "it ended with exit code 127: cannot start no-such-program: No such file or directory"
    )


async def test_a_folder_that_does_not_exist_is_named(host: ToolHost) -> None:
    await host.start_shared([odd(cwd="/no/such/folder")])

    assert host.status()[0].error == "it cannot be started: No such file or directory"


async def test_a_handshake_that_hangs_ends_with_the_startup_timeout(host: ToolHost) -> None:
    began = time.monotonic()

    await host.start_shared([odd("mute", "deaf", startup_timeout_s=0.5)])

    assert host.status()[0].error == "it was not ready within 0.5 s"
    assert time.monotonic() - began < 5


async def test_a_program_that_speaks_another_language_is_told_from_a_slow_one(host: ToolHost) -> None:
    spec = odd()
    chatter = "echo hello; echo there; exec sleep 60"

    await host.start_shared(
        [type(spec)(name="chatty", command="sh", args=("-c", chatter), env=spec.env, startup_timeout_s=0.5)]
    )

    assert host.status()[0].error.startswith("it was not ready within 0.5 s; it printed 2 lines to its stdout")


async def test_nothing_listens_at_the_url_of_an_http_server(host: ToolHost) -> None:
    spec = odd()

    await host.start_shared([type(spec)(name="web", transport="http", url="http://127.0.0.1:9/mcp")])

    status = host.status()[0]
    assert status.failed == 1
    assert "connect" in status.error.lower()


async def test_a_server_that_dies_in_a_call_fails_it_and_the_next_call_starts_it_again(host: ToolHost) -> None:
    tools = await opened(host)

    died = await called(tools, "crashes")
    next_one = await called(tools, "echo", text="back")

    assert died.is_error
    assert died.unknown
    assert died.text.startswith("MCP tool error (odd/crashes): the server ended during the call")
    assert next_one.text == "back"


async def test_a_server_that_keeps_dying_is_left_alone_for_a_while(host: ToolHost) -> None:
    tools = await opened(host)

    results = [await called(tools, "crashes") for _ in range(3)]

    assert results[0].unknown
    assert results[1].unknown
    assert not results[2].unknown
    assert "it is started again in" in results[2].text


async def test_a_failed_server_is_started_anew_by_the_next_reconciliation(host: ToolHost, tmp_path: Path) -> None:
    missing = tmp_path / "what-it-needs"
    spec = odd("odd", "exits", str(missing))
    await host.start_shared([spec])
    missing.touch()

    await host.start_shared([spec])

    assert [(row.started, row.failed) for row in host.status()] == [(1, 0)]


async def test_a_reconciliation_leaves_unchanged_servers_running_and_ends_removed_ones(host: ToolHost) -> None:
    await host.start_shared([odd("stays"), odd("goes")])
    before = below()

    await host.start_shared([odd("stays"), odd("comes")])

    assert [row.name for row in host.status()] == ["comes", "stays"]
    assert len(before & below()) == 2  # The wrapper and the server that stay.
    assert len(below()) == 4


async def test_servers_close_in_any_order(host: ToolHost) -> None:
    """The sessions' scopes would cancel strangers if one task closed what another had opened."""
    servers = [ToolServer(odd(f"odd{number}"), environment=PATH) for number in range(3)]
    for server in servers:
        server.start()
    await asyncio.gather(*(server.wait_attempted() for server in servers))

    await servers[1].close()
    alive = await asyncio.gather(*(server.call("echo", {"text": server.name}) for server in servers))
    await asyncio.gather(servers[0].close(), servers[2].close())

    assert [result.text for result in alive] == ["odd0", "MCP tool error (odd1/echo): the server was stopped", "odd2"]
    assert not below()


async def test_closing_answers_the_calls_under_way(host: ToolHost) -> None:
    tools = await opened(host)
    hanging = asyncio.get_running_loop().create_task(called(tools, "hangs"))
    await called(tools, "echo", text="the other call is under way")

    await host.close()

    result = await hanging
    assert result.is_error
    assert result.unknown


async def test_closing_while_a_server_starts_leaves_nothing(host: ToolHost) -> None:
    starting = asyncio.get_running_loop().create_task(host.start_shared([odd("mute", "deaf")]))
    await wait_until(lambda: len(below()) == 2)

    await host.close()
    await starting

    assert not below()
