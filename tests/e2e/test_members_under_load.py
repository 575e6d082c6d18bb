"""Three nodes whose brokers are one cluster, under load: one is stopped, one is killed, each loses its broker.

Minutes each: `make chaos` runs them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.testing.waiting import wait_until
from tests.e2e.effects import under_load
from tests.e2e.fleets import CLOCK, SEATS, Fleet, member_streams, running_fleet
from tests.e2e.networks import separate_networks

TTL_S = 15

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("CREWLET_LONG_OUTAGES"), reason="takes minutes: make chaos"),
]


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with separate_networks(3) as networks, running_fleet(tmp_path, networks, member_streams(), ttl_s=TTL_S) as it:
        await it.shared_among(0, 1, 2)
        yield it


async def at_work(fleet: Fleet) -> None:
    """Return once every seat had something to do since now."""
    begun = len(fleet.load.effects())
    await wait_until(
        lambda: {each.text.split()[0] for each in fleet.load.effects()[begun:]} == {*SEATS},
        what="work of every seat",
        timeout_s=3 * TTL_S,
    )


async def only_repeats_of(fleet: Fleet, index: int, since_s: float) -> None:
    """Everything that was taken is done, once; but for what a node was in the middle of at a moment: at most twice."""
    await fleet.load.worked(timeout_s=fleet.ttl_s + 30)
    repeated = fleet.load.repeated()
    print(f"{len(fleet.load.taken)} messages, {len(fleet.load.unsure)} sent in vain, {len(repeated)} worked twice")
    assert fleet.load.unasked() == set()
    assert len(repeated) <= len(SEATS) // 2
    for first, *again in repeated.values():
        assert (first.node, len(again)) == (fleet.name(index), 1)
        assert abs(first.at_s - since_s) < 2.0


@pytest.mark.parametrize(("stopped_by", "for_leases"), [(signal.SIGSTOP, 1.3), (signal.SIGTSTP, 2.0)])
async def test_a_node_that_is_stopped_past_its_leases_does_nothing_late_and_goes_on_in_the_fleet(
    fleet: Fleet, stopped_by: signal.Signals, for_leases: float
) -> None:
    """SIGSTOP for less long than the watchdog's backstop waits; Ctrl-Z for longer. It is the fence that holds it."""
    async with under_load(fleet.load, SEATS):
        await at_work(fleet)
        fleet.engines[0].signal(stopped_by)
        stopped_at_s = CLOCK.elapsed_s()
        await fleet.passed(for_leases * TTL_S)
        continued_at_s = CLOCK.elapsed_s()
        fleet.engines[0].signal(signal.SIGCONT)
        await fleet.shared_among(0, 1, 2)
        await at_work(fleet)
    code = fleet.engines[0].exit_code

    await only_repeats_of(fleet, 0, stopped_at_s)
    assert code is None
    woken = [each for each in fleet.load.effects() if each.node == fleet.name(0) and each.at_s > continued_at_s]
    assert woken
    elsewhere = {each.text for each in fleet.load.effects() if each.node != fleet.name(0)}
    assert {each.text for each in woken} & elsewhere == set()


async def test_each_member_may_lose_its_broker_in_turn_and_nothing_else(fleet: Fleet) -> None:
    async with under_load(fleet.load, SEATS):
        for engine in fleet.engines:
            await at_work(fleet)
            lost_at_s = CLOCK.elapsed_s()
            broker = engine.broker()
            os.kill(broker.pid, signal.SIGKILL)
            await wait_until(lambda: broker not in engine.processes(), what="the broker's end")  # noqa: B023 - awaited here
            await at_work(fleet)
            print(f"every seat had worked again {CLOCK.elapsed_s() - lost_at_s:.1f} s after the kill")
    await fleet.load.worked(timeout_s=TTL_S + 30)

    print(f"{len(fleet.load.taken)} messages, {len(fleet.load.unsure)} sent in vain")
    assert fleet.load.repeated() == {}
    assert fleet.load.unasked() == set()
    assert [engine.exit_code for engine in fleet.engines] == [None] * 3


async def test_a_member_that_is_killed_with_its_broker_costs_nothing_but_what_it_was_in_the_middle_of(
    fleet: Fleet,
) -> None:
    async with under_load(fleet.load, SEATS):
        await at_work(fleet)
        killed_at_s = CLOCK.elapsed_s()
        await fleet.engines[0].kill()
        await fleet.shared_among(1, 2)
        await at_work(fleet)
        print(f"every seat had worked again {CLOCK.elapsed_s() - killed_at_s:.1f} s after the kill")

    await only_repeats_of(fleet, 0, killed_at_s)
