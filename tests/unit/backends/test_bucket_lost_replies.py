"""A write whose answer was lost, against a scripted broker: what the leader holds afterwards decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from crewlet.backends.nats.wire import NotDone
from crewlet.base.errors import Unavailable
from crewlet.coordination import Revision
from tests.unit.backends.bucket_server import BucketServer, Stored, live, marker

pytestmark = pytest.mark.virtual_time

Standing = Callable[[Stored], Stored | None]


def ours(written: Stored) -> Stored:
    return written


def nothing(_: Stored) -> None:
    return None


def before(_: Stored) -> Stored:
    return live("seat.a", 7)


def newer(written: Stored) -> Stored:
    return live("seat.a", written.seq + 1)


def a_marker(written: Stored) -> Stored:
    return marker("seat.a", written.seq + 1)


@pytest.fixture
def server() -> BucketServer:
    server = BucketServer()
    server.holds = {"seat.a": live("seat.a", 7)}
    return server


@pytest.mark.parametrize("standing", [ours, nothing, a_marker])
async def test_a_removal_is_done_where_the_leader_holds_no_record(server: BucketServer, standing: Standing) -> None:
    server.lost = standing

    await server.bucket().delete("seat.a", expected=Revision(7))


@pytest.mark.parametrize("standing", [before, newer])
async def test_whether_a_removal_was_done_is_not_known_beside_a_record(
    server: BucketServer, standing: Standing
) -> None:
    server.lost = standing

    with pytest.raises(Unavailable):
        await server.bucket().delete("seat.a", expected=Revision(7))


async def test_an_update_that_landed_is_returned_with_its_own_revision_and_time(server: BucketServer) -> None:
    server.lost = ours

    written = await server.bucket().update("seat.a", b"new", expected=Revision(7))

    assert (written.value, written.revision, written.written_at) == (b"new", 101, live("seat.a", 101).at)


@pytest.mark.parametrize("standing", [nothing, before, newer, a_marker])
@pytest.mark.parametrize("verb", ["create", "update"])
async def test_whether_a_write_landed_is_not_known_beside_anything_else(
    server: BucketServer, verb: str, standing: Standing
) -> None:
    server.lost = standing
    bucket = server.bucket()

    with pytest.raises(Unavailable, match="not known"):
        await (
            bucket.create("seat.a", b"1") if verb == "create" else bucket.update("seat.a", b"1", expected=Revision(7))
        )


async def test_a_write_that_was_replaced_before_it_could_be_read_is_returned_with_an_earliest_time(
    server: BucketServer,
) -> None:
    bucket = server.bucket()
    time = await bucket.time()
    server.overtaken = True

    written = await bucket.update("seat.a", b"new", expected=Revision(7))

    assert (written.value, written.revision) == (b"new", 101)
    assert time.earliest <= written.written_at <= time.latest


async def test_a_write_that_landed_before_the_link_dropped_is_returned_once_there_is_another(
    server: BucketServer,
) -> None:
    bucket = server.bucket()
    server.drops_behind_a_write = True
    asyncio.get_running_loop().call_later(1.0, server.come_back)

    written = await bucket.update("seat.a", b"new", expected=Revision(7))

    assert (written.value, written.revision, written.written_at) == (b"new", 101, live("seat.a", 101).at)


async def test_a_write_that_landed_before_the_link_dropped_for_long_never_looks_as_if_it_had_not(
    server: BucketServer,
) -> None:
    bucket = server.bucket()
    server.drops_behind_a_write = True

    with pytest.raises(Unavailable, match="not known") as unknown:
        await bucket.update("seat.a", b"new", expected=Revision(7))

    assert not isinstance(unknown.value, NotDone)


async def test_a_write_that_cannot_be_sent_is_not_done(server: BucketServer) -> None:
    bucket = server.bucket()
    server.drop()

    with pytest.raises(NotDone):
        await bucket.update("seat.a", b"new", expected=Revision(7))
    server.come_back()
    server.leader = ""
    with pytest.raises(NotDone, match="no leader"):
        await bucket.update("seat.a", b"new", expected=Revision(7))
