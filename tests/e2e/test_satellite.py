"""A satellite: a node without a stream of its own, which runs seats through a node that keeps the streams."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from crewlet.base.clock import SystemClock
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, run_command, running_engine
from crewlet.testing.links import LinkProxy, proxied
from crewlet.testing.ports import free_port
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

Json = dict[str, Any]
SECRET = "a-secret-of-satellites"
IN_FULL = bool(os.environ.get("CREWLET_LONG_OUTAGES"))
TTL_S = 6
"""Shorter than what a question over a silent link takes to be given up, and its repetition."""
CLOCK = SystemClock()
LEASES: Json = {"type": "embedded-kv", "lease_ttl_seconds": TTL_S}


@pytest.fixture
def leaf_port() -> int:
    return free_port()


async def node_files(folder: Path, **node: Json) -> EngineFiles:
    write_script(folder, ECHO)
    seats = (role("near"), role("far"))
    return await write_engine_files(folder, company(*seats, llm={"script": scripted()}), node=node)


async def hub_files(folder: Path, port: int) -> EngineFiles:
    stream = {"type": "embedded", "leaf": {"port": port, "secret": SECRET}}
    return await node_files(folder, node={"id": "hub"}, stream=stream, coordination=LEASES)


async def satellite_files(folder: Path, port: int, *, secret: str = SECRET) -> EngineFiles:
    return await node_files(
        folder,
        node={"id": "satellite", "roles": ["seats"]},
        stream={"type": "embedded", "leaf": {"urls": [f"nats-leaf://127.0.0.1:{port}"], "secret": secret}},
        store={"scratch": True},
        coordination=LEASES,
    )


@pytest.fixture
async def hub(tmp_path: Path, leaf_port: int) -> AsyncIterator[Engine]:
    async with running_engine(await hub_files(tmp_path / "hub", leaf_port)) as hub:
        yield hub


async def holders(engine: Engine) -> Mapping[str, str | None]:
    return {seat["handle"]: seat["node"] for seat in (await engine.api.get("/query/fleet"))["seats"]}


async def held_by(engine: Engine, *nodes: str) -> None:
    """Return once these nodes hold the two seats between them."""

    async def are_held() -> bool:
        return sorted(map(str, (await holders(engine)).values())) == sorted(nodes)

    await wait_until(are_held, what=f"the seats on {nodes}", timeout_s=90)


@pytest.mark.spec("E-007")
async def test_its_seats_are_worked_through_the_hub_and_move_there_when_it_dies(
    hub: Engine, tmp_path: Path, leaf_port: int
) -> None:
    async with running_engine(await satellite_files(tmp_path / "satellite", leaf_port)) as satellite:
        await held_by(hub, "hub", "satellite")
        seat = next(handle for handle, node in (await holders(hub)).items() if node == "satellite")
        answer = await hub.api.final_message(await hub.api.send(seat, "Hi"))
        said = (await satellite.api.get("/health"))["node"]
        nodes = {each["id"]: (each["roles"], each["member"]) for each in (await hub.api.get("/query/fleet"))["nodes"]}
        stored = [*satellite.files.data_dir.rglob("jetstream")]
        await satellite.kill()
        later = await hub.api.final_message(await hub.api.send(seat, "Still there?"), timeout_s=60)

    assert answer["answer"] == "You said: Hi"
    assert (said, nodes["satellite"], {*nodes}) == ("satellite", (["seats"], None), {"hub", "satellite"})
    assert stored == []
    assert later["answer"] == "You said: Still there?"
    assert "events_not_stored" in satellite.err
    assert "events_not_stored" not in hub.err


async def test_a_satellite_with_another_secret_is_refused_and_told_which_setting(
    hub: Engine, tmp_path: Path, leaf_port: int
) -> None:
    files = await satellite_files(tmp_path / "satellite", leaf_port, secret="not-the-secret-of-these")
    refused = await run_command("run", *files.run_options, cwd=files.directory)

    assert refused.code != 0
    assert "stream.leaf.secret must be the same" in refused.err
    assert "not-the-secret" not in refused.err


@pytest.mark.skipif(not IN_FULL, reason="takes a minute: make chaos, which sets CREWLET_LONG_OUTAGES")
@pytest.mark.parametrize("outage", ["cut", "silent"])
async def test_a_satellite_whose_link_fails_loses_its_seats_and_takes_part_again_when_it_is_back(
    hub: Engine, tmp_path: Path, leaf_port: int, outage: str
) -> None:
    """However short its leases are, its process lives through it."""
    async with proxied(leaf_port) as link:
        files = await satellite_files(tmp_path / "satellite", int(link.url.rpartition(":")[2]))
        async with running_engine(files) as satellite:
            await held_by(hub, "hub", "satellite")
            fail(link, outage)
            await held_by(hub, "hub", "hub")
            await passed(4 * TTL_S)
            mend(link)
            await held_by(hub, "hub", "satellite")
            seat = next(handle for handle, node in (await holders(hub)).items() if node == "satellite")
            answer = await satellite.api.final_message(await hub.api.send(seat, "Back?"), timeout_s=60)

            assert satellite.exit_code is None

    assert answer["answer"] == "You said: Back?"


def fail(link: LinkProxy, outage: str) -> None:
    """Nothing passes any more; with ``cut`` both ends are told."""
    if outage == "silent":
        link.freeze()
    else:
        link.refuse = True
        link.drop()


def mend(link: LinkProxy) -> None:
    """What is dialled from now on passes."""
    link.refuse = False
    link.drop()
    link.thaw()


async def passed(seconds: float) -> None:
    """Return once so much time has passed."""
    end_s = CLOCK.elapsed_s() + seconds
    await wait_until(lambda: CLOCK.elapsed_s() >= end_s, what="the time", timeout_s=seconds + 10)
