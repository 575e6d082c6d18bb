"""A tool server that hangs at its start costs its tools, and not the node."""

from __future__ import annotations

import asyncio
import sys

import pytest

from crewlet.base.tasks import Tasks
from crewlet.node.shared_tools import start_shared_tools
from crewlet.tools import ToolHost, ToolServerSpec

pytestmark = pytest.mark.slow


async def test_a_server_that_hangs_at_its_start_is_not_waited_for_long() -> None:
    """It goes on starting beside the node, and ends with it."""
    host, tasks = ToolHost(environment={}), Tasks("test")
    hanging = ToolServerSpec(name="hanging", command=sys.executable, args=("-c", "import time; time.sleep(600)"))

    async with asyncio.timeout(20):
        await start_shared_tools(host, [hanging], tasks, wait_s=0.2)
        still_starting = len(tasks)
        await tasks.close()
        await host.close()

    assert still_starting == 1
    assert len(tasks) == 0


async def test_a_server_that_fails_is_waited_for_and_told() -> None:
    """Nothing is raised: it costs its own tools."""
    host, tasks = ToolHost(environment={}), Tasks("test")
    leaving = ToolServerSpec(name="leaving", command=sys.executable, args=("-c", "raise SystemExit(3)"))

    await start_shared_tools(host, [leaving], tasks, wait_s=20)
    rows = host.status()
    await host.close()

    assert [(row.name, row.failed) for row in rows] == [("leaving", 1)]
