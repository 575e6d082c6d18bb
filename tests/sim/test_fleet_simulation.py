"""A fleet's bad hours, each from one seed, and planted faults that its rules have to find."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.testing.fleet_simulation import FLEET_FAULTS, RULES, FleetFault, FleetPlan, simulate_fleet
from crewlet.testing.simulated import SimulatedProcess, in_processes

SEEDS = range(20)
SMALL = FleetPlan(nodes=5, seats=24, pinned=4, troubles=8, updated=2)
QUICK = {"the fence never closes", "the gate is open", "an unreachable store is a lost lease"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_is_broken_in_a_bad_hour(seed: int) -> None:
    run = simulate_fleet(seed, SMALL)

    assert run.findings == []
    assert run.grants > SMALL.seats
    assert run.calls > SMALL.seats


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [fault for fault in FLEET_FAULTS if fault.name in QUICK], ids=lambda fault: fault.name
)
def test_a_planted_fault_is_found_by_its_rule(fault: FleetFault) -> None:
    run = simulate_fleet(0, SMALL, fault)

    assert {finding.rule for finding in run.findings} & {*fault.rules}


def test_each_rule_has_a_fault_that_it_has_to_find() -> None:
    assert {rule for fault in FLEET_FAULTS for rule in fault.rules} == {*RULES}


@pytest.mark.slow
def test_one_seed_is_one_hour() -> None:
    plan = FleetPlan(nodes=3, seats=6, pinned=2, troubles=6, updated=0)

    one, other = simulate_fleet(7, plan), simulate_fleet(7, plan)

    assert (one.story, one.grants, one.calls, one.rested_s) == (other.story, other.grants, other.calls, other.rested_s)


@pytest.mark.virtual_time
async def test_a_stopped_process_takes_no_step_and_finds_its_timers_behind_it() -> None:
    in_processes(asyncio.get_running_loop())
    process, happened = SimulatedProcess("a:1"), list[str]()

    async def patient() -> None:
        try:
            async with asyncio.timeout(5.0):
                await asyncio.sleep(2.0)
                happened.append("slept")
                await asyncio.sleep(60.0)
        except TimeoutError:
            happened.append(f"timed out at {asyncio.get_running_loop().time():g}")

    work = process.run(patient())
    await asyncio.sleep(1.0)
    process.stop()
    await asyncio.sleep(99.0)
    while_stopped = [*happened]
    process.wake()
    await work

    assert while_stopped == []
    assert happened == ["timed out at 100"]


@pytest.mark.virtual_time
async def test_what_a_process_starts_stands_still_with_it_and_nobody_else_does() -> None:
    in_processes(asyncio.get_running_loop())
    process, ticks = SimulatedProcess("a:1"), {"inside": 0, "outside": 0}

    async def ticking(where: str) -> None:
        while True:
            await asyncio.sleep(1.0)
            ticks[where] += 1

    async def parent() -> None:
        await asyncio.gather(ticking("inside"))

    process.run(parent())
    outside = asyncio.get_running_loop().create_task(ticking("outside"))
    await asyncio.sleep(3.5)
    process.stop()
    await asyncio.sleep(3.0)
    outside.cancel()
    await process.end()

    assert ticks == {"inside": 3, "outside": 6}
