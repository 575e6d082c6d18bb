"""A seat's own children: they come with it, and nothing of them is left when it goes."""

from __future__ import annotations

import asyncio
import json

import psutil
import pytest

from crewlet.base.ids import Handle
from crewlet.testing import wait_until
from crewlet.tools import ToolHost
from tests.e2e.tools.conftest import CEO, below, odd
from tests.e2e.tools.test_calls import called

pytestmark = pytest.mark.slow
CTO = Handle("cto")


async def test_each_seat_has_its_own_child_with_its_own_variables(host: ToolHost) -> None:
    template = odd("mine", shared=False)

    ceo, cto = await asyncio.gather(
        host.open_seat(CEO, [template.for_seat({"TOKEN": "of the ceo"})]),
        host.open_seat(CTO, [template.for_seat({"TOKEN": "of the cto"})]),
    )

    seen = [json.loads((await called(tools, "env")).text)["TOKEN"] for tools in (ceo, cto)]
    assert seen == ["of the ceo", "of the cto"]
    assert [(row.name, row.started) for row in host.status()] == [("mine", 2)]


@pytest.mark.spec("C-205")
async def test_twenty_moves_of_a_seat_leave_as_many_processes_as_before(host: ToolHost) -> None:
    await host.start_shared([odd("shared")])
    before, files = below(), psutil.Process().num_fds()
    specs = [odd("one", shared=False), odd("two", shared=False)]

    for _ in range(20):
        await host.open_seat(CEO, specs)
        assert len(below()) == len(before) + 4
        await host.close_seat(CEO)

    assert below() == before
    assert psutil.Process().num_fds() == files


async def test_a_seat_that_is_given_up_while_it_opens_leaves_nothing(host: ToolHost) -> None:
    opening = asyncio.get_running_loop().create_task(host.open_seat(CEO, [odd("mute", "deaf", shared=False)]))
    await wait_until(lambda: len(below()) == 2)

    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening

    assert not below()
    assert host.status() == []


@pytest.mark.spec("C-192", "C-193", "C-194")
async def test_the_status_counts_instances_and_names_one_failure_in_240_bytes(host: ToolHost) -> None:
    await host.open_seat(CEO, [odd("mine", shared=False)])
    await host.open_seat(CTO, [odd("mine", "exits", shared=False, cwd="/no/such/folder")])
    wordy = odd("wordy")

    await host.start_shared([type(wordy)(name="wordy", command="sh", args=("-c", "printf 'é%.0s' $(seq 1000) >&2"))])

    mine, long = host.status()
    assert (mine.shared, mine.started, mine.failed, mine.tools, mine.seat) == (False, 1, 1, 11, "cto")
    assert 238 <= len(long.error.encode()) <= 240
    assert long.error.endswith("é")
