"""The sweep of removal markers, step by step, against a scripted broker."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from tests.unit.backends.bucket_server import CREATED_AT, BucketServer, live, marker

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def server() -> BucketServer:
    return BucketServer()


def purges(server: BucketServer) -> list[tuple[str, int]]:
    return sorted((body["filter"], body["seq"]) for verb, body in server.bodies if verb == "STREAM.PURGE")


@pytest.mark.spec("C-151", "C-156")
async def test_each_old_marker_is_purged_through_its_own_revision_alone(server: BucketServer) -> None:
    server.shows = [
        live("a", 1),
        marker("b", 2),
        marker("c.d", 3),
        marker("young", 9),
        marker("again", 4),
        live("again", 5),
    ]

    swept = await server.bucket().purge_markers(before=CREATED_AT + timedelta(seconds=9))

    assert swept == 2
    # The broker takes what is below the number, so it is one above the marker's.
    assert purges(server) == [("$KV.crewlet_scripted.b", 3), ("$KV.crewlet_scripted.c.d", 4)]
    assert server.consumers == {}


@pytest.mark.spec("C-033")
async def test_a_sweep_whose_pass_goes_quiet_takes_what_it_saw(server: BucketServer) -> None:
    server.shows, server.pending = [marker("a", 1)], 5
    began = asyncio.get_running_loop().time()

    swept = await server.bucket().purge_markers(before=CREATED_AT + timedelta(seconds=50))

    assert swept == 1
    assert asyncio.get_running_loop().time() - began == pytest.approx(limits.LISTING_QUIET_S, abs=0.1)
    assert "STREAM.INFO" not in server.verbs()


@pytest.mark.spec("C-033")
async def test_a_sweep_is_shown_no_values(server: BucketServer) -> None:
    await server.bucket().purge_markers(before=CREATED_AT)

    assert dict(server.bodies)["CONSUMER.CREATE"]["config"]["headers_only"] is True


@pytest.mark.parametrize("verb", ["CONSUMER.CREATE", "STREAM.PURGE"])
async def test_a_sweep_that_fails_is_unavailable_and_leaves_nothing_behind(server: BucketServer, verb: str) -> None:
    server.shows = [marker("a", 1)]
    server.refuses[verb] = (404, 10059)

    with pytest.raises(Unavailable):
        await server.bucket().purge_markers(before=CREATED_AT + timedelta(seconds=50))

    assert (server.consumers, server.subscriptions) == ({}, {})
    assert len(asyncio.all_tasks()) == 1
