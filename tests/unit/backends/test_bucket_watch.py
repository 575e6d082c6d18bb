"""A watch, step by step, against a scripted broker: what it begins with, what it passes on, how it is over."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import Change, Record, Revision, Watch
from tests.unit.backends.bucket_server import BucketServer, Stored, live, marker

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def server() -> BucketServer:
    return BucketServer()


def held(watch: Watch) -> dict[str, int]:
    return {record.key: record.revision for record in watch.answer}


def change(stored: Stored) -> Change:
    if stored.headers:
        return Change(stored.key, None, Revision(stored.seq))
    return Change(stored.key, Record(stored.key, stored.value, Revision(stored.seq), stored.at), Revision(stored.seq))


@pytest.mark.spec("C-034")
async def test_what_the_pass_lost_is_in_the_answer_all_the_same(server: BucketServer) -> None:
    server.shows = [live("seat_pause.a", 1)]
    server.named("seat_pause.a", "seat_pause.b")
    server.holds = {"seat_pause.b": live("seat_pause.b", 9)}

    async with server.bucket().watch("seat_pause.>") as watch:
        assert held(watch) == {"seat_pause.a": 1, "seat_pause.b": 9}


@pytest.mark.spec("C-035")
async def test_a_watch_whose_pass_goes_quiet_has_its_answer_after_five_seconds(server: BucketServer) -> None:
    server.shows, server.pending = [live("seat_pause.a", 1)], 4
    server.named("seat_pause.a", "seat_pause.b")
    server.holds = {"seat_pause.b": live("seat_pause.b", 2)}
    began = asyncio.get_running_loop().time()
    beating = asyncio.ensure_future(_beat(server))

    async with server.bucket().watch("seat_pause.>") as watch:
        took_s = asyncio.get_running_loop().time() - began
        assert held(watch) == {"seat_pause.a": 1, "seat_pause.b": 2}
        server.show(live("seat_pause.c", 101))
        assert await watch.next() == change(live("seat_pause.c", 101))

    beating.cancel()
    assert took_s == pytest.approx(limits.LISTING_QUIET_S, abs=0.1)


@pytest.mark.spec("C-037", "C-039")
async def test_changes_come_from_the_pass_that_the_answer_came_from(server: BucketServer) -> None:
    server.shows = [live("seat.a", 1)]
    server.named("seat.a")

    async with server.bucket().watch("seat.>") as watch:
        for number in range(50):
            server.show(live("seat.a", 200 + number))
            assert await watch.next() == change(live("seat.a", 200 + number))
        assert sorted(server.verbs()) == ["CONSUMER.CREATE", "STREAM.INFO"]
        assert len(server.consumers) == 1

    assert server.consumers == {}


@pytest.mark.spec("C-037")
async def test_what_is_shown_while_the_leader_is_read_is_a_change(server: BucketServer) -> None:
    server.read_s, server.last_seq = 1.0, 50
    server.named("seat.lost")
    server.holds = {"seat.lost": live("seat.lost", 7)}
    opening = asyncio.ensure_future(_opened_and_left(server, take=2))
    await asyncio.sleep(0.5)
    server.show(live("seat.new", 60))
    server.show(live("seat.lost", 61))

    answer, changes = await opening

    assert answer == {"seat.lost": 7}
    assert changes == [change(live("seat.new", 60)), change(live("seat.lost", 61))]


@pytest.mark.spec("C-038")
@pytest.mark.parametrize(
    "late",
    [
        live("seat.read", 30),
        marker("seat.read", 39),
        live("seat.read", 40),
        live("seat.removed", 44),
        marker("seat.removed", 45),
        live("seat.gone", 50),
        live("seat.never_seen", 50),
        live("seat.behind", 49),
        marker("seat.behind", 50),
    ],
    ids=lambda stored: f"{stored.key}@{stored.seq}",
)
async def test_no_revision_that_the_answer_already_settled_is_passed_on(server: BucketServer, late: Stored) -> None:
    server.last_seq = 50
    server.shows = [live("seat.behind", 10)]
    server.named("seat.read", "seat.removed", "seat.gone")
    server.holds = {"seat.read": live("seat.read", 40), "seat.removed": marker("seat.removed", 45)}

    async with server.bucket().watch("seat.>") as watch:
        assert held(watch) == {"seat.read": 40}
        server.show(late)
        server.show(live("seat.new", 51))
        assert await watch.next() == change(live("seat.new", 51))


@pytest.mark.spec("C-038")
async def test_what_is_newer_than_the_answer_is_passed_on_key_by_key(server: BucketServer) -> None:
    server.last_seq = 50
    server.shows = [live("seat.shown", 10), marker("seat.removed", 52)]
    server.named("seat.shown")
    news = [live("seat.shown", 11), live("seat.removed", 53), marker("seat.shown", 54), live("seat.other", 55)]

    async with server.bucket().watch("seat.>") as watch:
        for stored in news:
            server.show(stored)
        assert [await watch.next() for _ in news] == [change(stored) for stored in news]


@pytest.mark.spec("S-198")
async def test_its_position_is_what_was_shown_and_never_what_the_leader_said(server: BucketServer) -> None:
    server.last_seq = 50
    server.shows = [live("seat.a", 3)]
    server.named("seat.a", "seat.b")
    server.holds = {"seat.b": live("seat.b", 49)}

    async with server.bucket().watch("seat.>") as watch:
        at_first = watch.position
        server.show(live("seat.b", 49))
        suppressed = watch.position
        server.beat(passed=57)
        beaten = watch.position

    assert (at_first, suppressed, beaten) == (3, 49, 57)


async def test_a_watch_over_a_lost_link_says_so_to_who_waits_and_to_who_comes_later(server: BucketServer) -> None:
    server.named()
    async with server.bucket().watch("seat.>") as watch:
        waiting = asyncio.ensure_future(watch.next())
        await asyncio.sleep(0.01)
        server.drop()
        server.come_back()

        with pytest.raises(Unavailable):
            await waiting
        server.show(live("seat.a", 101))
        for _ in range(2):
            with pytest.raises(Unavailable):
                await watch.next()


async def test_a_watch_that_nobody_asked_while_the_link_dropped_is_over_at_the_next_question(
    server: BucketServer,
) -> None:
    server.named()
    async with server.bucket().watch("seat.>") as watch:
        server.show(live("seat.a", 101))
        server.drop()
        server.come_back()
        await asyncio.sleep(3600.0)

        with pytest.raises(Unavailable):
            await watch.next()


async def test_a_watch_that_hears_no_heartbeat_is_over(server: BucketServer) -> None:
    server.named()
    async with server.bucket().watch("seat.>") as watch:
        for _ in range(5):
            await asyncio.sleep(limits.WATCH_HEARTBEAT_S)
            server.beat()
        began = asyncio.get_running_loop().time()

        with pytest.raises(Unavailable, match="silent"):
            await watch.next()
        assert asyncio.get_running_loop().time() - began == pytest.approx(2.5 * limits.WATCH_HEARTBEAT_S, abs=0.1)


async def test_a_watch_that_missed_a_delivery_is_over(server: BucketServer) -> None:
    server.named()
    async with server.bucket().watch("seat.>") as watch:
        server.show(live("seat.a", 101), delivery=2)

        with pytest.raises(Unavailable, match="missing"):
            await watch.next()


async def test_a_watch_whose_changes_nobody_takes_is_over(
    server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WATCH_BACKLOG_MAX", 10)
    server.named()
    async with server.bucket().watch("seat.>") as watch:
        for number in range(10):
            server.show(live("seat.a", 101 + number))
        assert await watch.next() == change(live("seat.a", 101))
        for number in range(10, 12):
            server.show(live("seat.a", 101 + number))

        with pytest.raises(Unavailable, match="not taken"):
            await watch.next()


async def test_a_watch_that_cannot_begin_leaves_nothing_behind(server: BucketServer) -> None:
    server.named()
    server.leader = ""
    listeners = server.listeners

    with pytest.raises(Unavailable, match="no leader"):
        async with server.bucket().watch("seat.>"):
            pytest.fail("a watch without an answer")

    assert (server.consumers, server.subscriptions) == ({}, {})
    assert server.listeners == listeners + 1
    assert len(asyncio.all_tasks()) == 1


async def test_a_watch_whose_block_fails_leaves_nothing_behind(server: BucketServer) -> None:
    server.named()

    with pytest.raises(ZeroDivisionError):
        async with server.bucket().watch("seat.>"):
            raise ZeroDivisionError

    assert (server.consumers, server.subscriptions) == ({}, {})
    assert len(asyncio.all_tasks()) == 1


async def test_several_patterns_are_one_pass_and_an_index_each(server: BucketServer) -> None:
    server.shows = [live("seat.a", 1), live("node.n", 2)]
    server.named("seat.a", "node.n")

    async with server.bucket().watch("seat.>", "node.*", "seat.a") as watch:
        assert held(watch) == {"seat.a": 1, "node.n": 2}

    bodies = [(verb, body) for verb, body in server.bodies if verb in ("STREAM.INFO", "CONSUMER.CREATE")]
    indexed = [body["subjects_filter"] for verb, body in bodies if verb == "STREAM.INFO"]
    (consumer,) = [body["config"] for verb, body in bodies if verb == "CONSUMER.CREATE"]
    assert indexed == consumer["filter_subjects"] == ["$KV.crewlet_scripted.seat.>", "$KV.crewlet_scripted.node.*"]


async def _beat(server: BucketServer) -> None:
    while True:
        await asyncio.sleep(limits.WATCH_HEARTBEAT_S)
        server.beat()


async def _opened_and_left(server: BucketServer, *, take: int) -> tuple[dict[str, int], list[Change]]:
    async with server.bucket().watch("seat.>") as watch:
        return held(watch), [await watch.next() for _ in range(take)]
