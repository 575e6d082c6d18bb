"""A tool server that hangs at its start costs its tools, and not the node."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import pytest

from crewlet.base.ids import Handle
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


async def test_a_seats_servers_are_settled_once_they_are_the_documents_and_each_was_tried() -> None:
    """Whether it serves is another question; and one that the document does not name says nothing of it."""
    host = ToolHost(environment={})
    leaving = ToolServerSpec(
        name="desk", shared=False, command=sys.executable, args=("-c", "raise SystemExit('no key')")
    )
    changed = replace(leaving, env={"KEY": "x"})

    before = host.unsettled([leaving], "ceo")
    await host.open_seat(Handle("ceo"), [leaving])
    tried, failed = host.unsettled([leaving], "ceo"), host.failed([leaving], "ceo")
    others = host.unsettled([changed], "ceo"), host.failed([changed], "ceo"), host.unsettled([], "ceo")
    await host.close()

    assert (before, tried) == (("desk",), ())
    assert [(row.name, row.seat, "no key" in row.error) for row in failed] == [("desk", "ceo", True)]
    assert others == (("desk",), [], ("desk",))
