"""Whatever becomes of nodes and their links, no two are at one duty, and once all is well some node is."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.base.errors import CrewletError
from crewlet.testing import run_virtual
from tests.unit.duties.rig import TIMES, Fleet, elapsed_s

STEPS = ("cut", "mend", "kill", "stop", "start", "fail", "recover", "slow", "quick", "lose", "silence", "tick", "ttl")
NODES_MAX = 4


class History:
    """One random history over a few nodes."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self.born = 0

    def start(self) -> None:
        if len(self.fleet.nodes) < NODES_MAX:
            self.fleet.started(f"n{self.born}")
            self.born += 1

    async def take(self, step: str, which: int) -> None:  # noqa: C901 - one short case a step
        fleet = self.fleet
        if step == "start" or not fleet.nodes:
            self.start()
            return
        node = fleet.nodes[which % len(fleet.nodes)]
        match step:
            case "cut" | "mend":
                node.cut(off=step == "cut")
                node.process.stores[1].link.silent = False
            case "silence":
                node.process.stores[1].link.silent = True
            case "kill":
                await fleet.killed(node)
            case "stop":
                await node.runner.stop()
                fleet.nodes.remove(node)
            case "fail":
                fleet.work.failing[node.name] = CrewletError("broken")
            case "recover":
                fleet.work.failing.pop(node.name, None)
            case "slow":
                fleet.work.lasts_s = 3 * TIMES.ttl_s
            case "quick":
                fleet.work.lasts_s = 1.0
            case "lose":
                node.process.stores[1].link.cut_after_write()
            case "ttl":
                await asyncio.sleep(TIMES.ttl_s)
            case _:
                await asyncio.sleep(TIMES.every_s)

    async def all_well(self) -> None:
        """Every node that is there hears the store, and can work; one is there."""
        self.fleet.work.lasts_s = 1.0
        self.fleet.work.failing.clear()
        for node in self.fleet.nodes:
            node.cut(off=False)
            node.process.stores[1].link.silent = False
            node.process.stores[1].link.next_write = "arrives"
        if not self.fleet.nodes:
            self.start()


async def lived(steps: list[tuple[str, int, float]]) -> None:
    history = History()
    history.start()
    history.start()
    for step, which, pause_s in steps:
        await history.take(step, which)
        await asyncio.sleep(pause_s)
    await history.all_well()
    well_s = elapsed_s()
    await asyncio.sleep(2 * TIMES.ttl_s + 3 * TIMES.every_s)
    worked = [at_s for _, at_s in history.fleet.work.ended if at_s > well_s]
    await history.fleet.close()

    assert history.fleet.work.doubled == []
    assert worked, "a duty that nobody does"
    assert history.fleet.work.at_work == set()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.floats(0, 90)), min_size=5, max_size=30))
def test_no_two_nodes_are_at_one_duty_and_it_is_done_once_all_is_well(steps: list[tuple[str, int, float]]) -> None:
    run_virtual(lived(steps))
