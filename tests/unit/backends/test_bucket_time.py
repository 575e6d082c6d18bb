"""What a store knows of the broker's clock, against a scripted broker: from every answer that tells, else asked."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from tests.unit.backends.bucket_server import CREATED_AT, BucketServer

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def server() -> BucketServer:
    return BucketServer()


async def test_the_time_is_asked_for_once_in_a_while(server: BucketServer) -> None:
    bucket = server.bucket()

    first = await bucket.time()
    await asyncio.sleep(limits.STORE_CLOCK_ASKED_EVERY_S - 1)
    await bucket.time()
    assert server.verbs() == ["STREAM.INFO"]
    await asyncio.sleep(2)
    await bucket.time()

    assert first.earliest <= CREATED_AT <= first.latest
    assert server.verbs() == ["STREAM.INFO", "STREAM.INFO"]


async def test_who_writes_knows_the_time_unasked(server: BucketServer) -> None:
    bucket = server.bucket()
    written = await bucket.create("seat.a", b"1")

    now = await bucket.time()

    assert now.earliest <= written.written_at <= now.latest
    assert "STREAM.INFO" not in server.verbs()


async def test_a_write_that_nobody_asks_the_time_of_is_one_request_and_has_an_earliest_time(
    server: BucketServer,
) -> None:
    bucket = server.bucket(dated=False)
    time = await bucket.time()

    written = await bucket.create("seat.a", b"1")

    assert time.earliest <= written.written_at <= time.latest
    assert "STREAM.MSG.GET" not in server.verbs()


async def test_who_lists_knows_the_time_unasked(server: BucketServer) -> None:
    bucket = server.bucket()
    await bucket.list("seat.>")

    await bucket.time()

    assert server.verbs().count("STREAM.INFO") == 1


async def test_a_time_that_was_known_once_is_not_known_for_ever(server: BucketServer) -> None:
    bucket = server.bucket()
    await bucket.time()
    server.drop()

    await bucket.time()
    await asyncio.sleep(limits.STORE_CLOCK_ASKED_EVERY_S + 1)

    with pytest.raises(Unavailable):
        await bucket.time()
