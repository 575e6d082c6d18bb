"""What comes back from a call to a real tool server, however it goes."""

from __future__ import annotations

import asyncio
import json

import pytest

from crewlet.base.fence import OpenFence
from crewlet.base.trace import Trace
from crewlet.tools import CallContext, Hint, SeatTools, ToolHost, ToolResult
from tests.e2e.tools.conftest import CEO, odd

pytestmark = pytest.mark.slow

CONTEXT = CallContext(handle="ceo", turn_id="t", work_key="w", fence=OpenFence(), trace=Trace("0" * 32, "0" * 16))


async def opened(host: ToolHost, **fields: object) -> SeatTools:
    await host.start_shared([odd(**fields)])  # type: ignore[arg-type]
    return await host.open_seat(CEO, [])


async def called(tools: SeatTools, name: str, **arguments: object) -> ToolResult:
    tool = tools.find(name)
    assert tool is not None
    return await tool.call(arguments, CONTEXT)


async def test_all_pages_of_a_servers_tools_are_listed_with_their_hints(host: ToolHost) -> None:
    tools = await opened(host)

    rows = {row.name: row for row in tools.server_tools("odd")}

    assert len(rows) == 11
    assert rows["echo"].annotations.read_only is Hint.YES
    assert rows["echo"].annotations.open_world is Hint.NO
    assert rows["env"].annotations.read_only is Hint.UNKNOWN
    assert rows["env"].origin == "mcp:odd"


async def test_a_long_result_is_never_cut(host: ToolHost) -> None:
    tools = await opened(host)
    text = "x" * 3_000_000

    result = await called(tools, "echo", text=text)

    assert result == ToolResult(text)


async def test_secrets_and_control_characters_stay_out_of_results(host: ToolHost) -> None:
    tools = await opened(host, secrets=frozenset({"hunter22"}))

    result = await called(tools, "echo", text="a\x07\x1b[31mred\x1b[0m\tpassword: hun\x00ter22\n")

    assert result.text == "ared\tpassword: [redacted]\n"


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("fails", "MCP tool error (odd/fails): the disk is full"),
        ("refused", "MCP tool error (odd/refused): no such thing"),
        ("image", "MCP tool error (odd/image): (left out, for only text can be passed on: image image/png)"),
    ],
)
async def test_a_failed_call_is_a_result_that_says_why(host: ToolHost, tool: str, text: str) -> None:
    tools = await opened(host)

    result = await called(tools, tool)

    assert result == ToolResult(text, is_error=True)


async def test_text_beside_an_image_is_passed_on(host: ToolHost) -> None:
    tools = await opened(host)

    result = await called(tools, "mixed")

    assert not result.is_error
    assert result.text.startswith("one\ntwo\n(left out")


async def test_structured_content_stands_in_for_missing_text(host: ToolHost) -> None:
    tools = await opened(host)

    result = await called(tools, "structured")

    assert json.loads(result.text) == {"answer": 42}


async def test_a_tool_that_hangs_fails_after_the_request_timeout_and_the_server_lives_on(host: ToolHost) -> None:
    tools = await opened(host, request_timeout_s=0.3)

    result = await called(tools, "hangs")

    assert result == ToolResult("MCP tool error (odd/hangs): no answer within 0.3 s", is_error=True, unknown=True)
    assert (await called(tools, "echo", text="still here")).text == "still here"


async def test_a_slow_call_does_not_hold_up_another(host: ToolHost) -> None:
    tools = await opened(host)

    async with asyncio.TaskGroup() as calls:
        slow = calls.create_task(called(tools, "sleeps", seconds=15))
        quick = await called(tools, "echo", text="quick")
        was_done = slow.done()
        slow.cancel()

    assert quick.text == "quick"
    assert not was_done


async def test_cancelling_a_caller_cancels_the_request_at_the_server(host: ToolHost) -> None:
    tools = await opened(host)
    waiting = asyncio.get_running_loop().create_task(called(tools, "hangs"))
    await called(tools, "echo", text="the other call is under way")

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    async with asyncio.timeout(5):
        while (await called(tools, "noise")).text != "cancelled: 1":
            pass


async def test_a_server_sees_only_the_allowed_environment_and_its_own() -> None:
    engine = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "ANTHROPIC_API_KEY": "sk-very-secret", "CREWLET_X": "y"}
    host = ToolHost(environment=engine)
    try:
        tools = await opened(host, env={"MINE": "1"})

        seen = json.loads((await called(tools, "env")).text)
    finally:
        await host.close()

    assert seen.pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8"
    assert seen == {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MINE": "1"}


async def test_more_calls_than_the_bound_are_refused_unsent(host: ToolHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlet.base.limits.TOOL_SERVER_QUEUE_MAX", 2)
    tools = await opened(host)
    hanging = [asyncio.get_running_loop().create_task(called(tools, "hangs")) for _ in range(2)]
    await asyncio.sleep(0)

    result = await called(tools, "echo")

    assert result.is_error
    assert not result.unknown
    assert result.text == "MCP tool error (odd/echo): 2 calls are waiting for this server; nothing was sent"
    for call in hanging:
        call.cancel()
