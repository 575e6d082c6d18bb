"""Nodes that are cut off from the others: they act on nothing once their leases may be others', and nothing is lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crewlet.backends.nats.binary import find_server
from crewlet.testing.engines import Engine
from crewlet.testing.waiting import wait_until
from tests.broker.test_external_broker import TOKEN
from tests.e2e.effects import Effect, under_load
from tests.e2e.fleets import CLOCK, SEATS, Fleet, member_streams, running_fleet
from tests.e2e.networks import Networks, separate_networks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Json = dict[str, Any]
CUT_FOR_LEASES = 1.5
ARRIVES_S = 1.0
BROKER_PORT = 4222
members_too = pytest.mark.skipif(
    not os.environ.get("CREWLET_LONG_OUTAGES"), reason="takes minutes: make chaos, which sets CREWLET_LONG_OUTAGES"
)


@pytest.fixture
async def networks() -> AsyncIterator[Networks]:
    async with separate_networks(3) as networks:
        yield networks


@asynccontextmanager
async def broker_beside_the_switch(folder: Path, networks: Networks) -> AsyncGenerator[str]:
    address = f"{networks.address(-1)}:{BROKER_PORT}"
    config = folder / "server.conf"
    config.write_text(
        f'listen: "{address}"\njetstream {{ store_dir: "{folder}" }}\nauthorization {{ token: {TOKEN} }}\n'
    )
    process = await asyncio.create_subprocess_exec(
        *networks.within(-1), str(find_server().path), "-c", str(config), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield f"nats://{address}"
    finally:
        process.kill()
        await process.wait()


async def promises_over_a_cut(fleet: Fleet) -> None:
    """Cut the first node off for longer than a lease, under load, and heal it; raise where a promise is not kept.

    One of its seats is given something to do just before: its tool call would come when the lease is over.
    """
    everybody, cut_off = range(len(fleet.engines)), fleet.name(0)
    await fleet.shared_among(*everybody)
    held = await fleet.held_by(0)
    slow = min(held)

    def elsewhere(since_s: float) -> list[Effect]:
        return [each for each in fleet.load.effects() if each.at_s > since_s and each.node != cut_off]

    async with under_load(fleet.load, [seat for seat in SEATS if seat != slow]):
        await wait_until(lambda: len(fleet.load.effects()) > 2 * len(SEATS), what="a load", timeout_s=60)
        asked = await fleet.load.ask(fleet.engines[1], slow)
        await wait_until(lambda: begun(fleet.engines[0], slow), what="its turn", timeout_s=10)
        cut_at_s = CLOCK.elapsed_s()
        await fleet.networks.cut(0)
        await fleet.shared_among(*everybody[1:])
        await wait_until(
            lambda: {each.text.split()[0] for each in elsewhere(cut_at_s)} == {*SEATS},
            what="work of every seat, whoever had it before",
            timeout_s=30,
        )
        moved_s = CLOCK.elapsed_s() - cut_at_s
        await fleet.passed(max(0.0, CUT_FOR_LEASES * fleet.ttl_s - moved_s))
        gave_up = await fleet.held_by(0)
        healed_at_s = CLOCK.elapsed_s()
        await fleet.networks.heal(0)
        await fleet.shared_among(*everybody)
        back_s = CLOCK.elapsed_s() - healed_at_s
        resumed = len(fleet.load.effects())
        await wait_until(lambda: len(fleet.load.effects()) > resumed + 2 * len(SEATS), what="a load", timeout_s=60)
    await fleet.load.worked(timeout_s=fleet.ttl_s + 60)
    effects, repeated = fleet.load.effects(), fleet.load.repeated()
    print(
        f"{len(fleet.load.taken)} messages, {len(fleet.load.unsure)} sent in vain; every seat had worked elsewhere"
        f" {moved_s:.1f} s after the cut, shared again {back_s:.1f} s after it was healed; {len(repeated)} worked twice"
    )

    assert gave_up == set()
    assert fleet.load.unasked() == set()
    # It was proven for a lease from its last renew on, which began before the cut; and a call takes its time to arrive.
    until_s = cut_at_s + fleet.ttl_s + ARRIVES_S
    assert [each for each in effects if each.node == cut_off and until_s < each.at_s < healed_at_s] == []
    assert [each.node == cut_off for each in effects if each.text == asked] == [False]
    # What it was in the middle of when it was cut off may be done again, once; nothing else.
    in_hand = [twice for twice in repeated.values() if twice[0].node == cut_off]
    assert len(in_hand) == len(repeated) < len(held)
    assert all(len(twice) == 2 and abs(twice[0].at_s - cut_at_s) < fleet.ttl_s for twice in in_hand)


async def begun(engine: Engine, seat: str) -> bool:
    """Whether a turn of this seat is under way."""
    seats = (await engine.api.get("/seats"))["seats"]
    return any(each["handle"] == seat and each["activity"] == "working" for each in seats)


async def test_a_node_that_its_broker_is_cut_off_from_acts_on_nothing_past_its_leases_and_comes_back(
    networks: Networks, tmp_path: Path
) -> None:
    (tmp_path / "server").mkdir()
    async with broker_beside_the_switch(tmp_path / "server", networks) as url:
        stream = {"type": "nats", "url": url, "token": TOKEN}
        async with running_fleet(tmp_path, networks, [stream] * 2, ttl_s=6, first_thinks_ms=5000) as fleet:
            await promises_over_a_cut(fleet)


@members_too
@pytest.mark.cluster
async def test_a_member_that_is_cut_off_from_the_two_others_acts_on_nothing_past_its_leases_and_comes_back(
    networks: Networks, tmp_path: Path
) -> None:
    async with running_fleet(tmp_path, networks, member_streams(), ttl_s=15, first_thinks_ms=8000) as fleet:
        await promises_over_a_cut(fleet)


@members_too
@pytest.mark.cluster
async def test_two_members_that_cannot_reach_each_other_lose_nothing_while_the_third_reaches_both(
    networks: Networks, tmp_path: Path
) -> None:
    async with running_fleet(tmp_path, networks, member_streams(), ttl_s=15) as fleet:
        await fleet.shared_among(0, 1, 2)
        async with under_load(fleet.load, SEATS):
            await wait_until(lambda: len(fleet.load.effects()) > 2 * len(SEATS), what="a load", timeout_s=60)
            await fleet.networks.cut_off_from(0, 1)
            await fleet.passed(2 * fleet.ttl_s)
            await fleet.networks.heal_towards(0, 1)
            await fleet.shared_among(0, 1, 2)
        await fleet.load.worked(timeout_s=fleet.ttl_s + 30)
        repeated = fleet.load.repeated()
        print(f"{len(fleet.load.taken)} messages, {len(fleet.load.unsure)} sent in vain, {len(repeated)} worked twice")

        assert fleet.load.unasked() == set()
        assert repeated == {}
