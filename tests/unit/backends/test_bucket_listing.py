"""A certified listing, step by step, against a scripted broker: what is asked, what is waited for, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import Record
from tests.unit.backends.bucket_server import BucketServer, Stored, live, marker

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def server() -> BucketServer:
    return BucketServer()


def revisions(records: list[Record]) -> dict[str, int]:
    assert len({record.key for record in records}) == len(records)
    return {record.key: record.revision for record in records}


async def listed(server: BucketServer, pattern: str = "seat.>") -> dict[str, int]:
    return revisions(await server.bucket().list(pattern))


def now_s() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.spec("C-015", "C-045", "C-046", "C-048")
async def test_what_a_quiet_bucket_holds_takes_one_pass_and_no_read(server: BucketServer) -> None:
    server.shows = [live(f"seat.s{number}", number + 1) for number in range(500)]
    server.named(*(stored.key for stored in server.shows))

    records = await server.bucket().list("seat.>")

    assert revisions(records) == {stored.key: stored.seq for stored in server.shows}
    assert {record.key: record.value for record in records} == {stored.key: stored.value for stored in server.shows}
    assert [record.written_at for record in records] == [stored.at for stored in server.shows]
    assert sorted(server.verbs()) == ["CONSUMER.CREATE", "CONSUMER.DELETE", "STREAM.INFO"]


@pytest.mark.spec("C-019", "C-022", "C-045")
async def test_a_key_that_the_pass_lost_is_read_from_the_leader(server: BucketServer) -> None:
    server.shows = [live("seat.a", 1), live("seat.c", 3)]
    server.named("seat.a", "seat.b", "seat.c")
    server.holds = {"seat.b": live("seat.b", 9)}

    found = await listed(server)

    assert found == {"seat.a": 1, "seat.b": 9, "seat.c": 3}
    assert server.read() == ["seat.b"]


@pytest.mark.spec("C-019", "C-044")
async def test_pass_and_index_are_of_one_filter_and_asked_beside_each_other(server: BucketServer) -> None:
    server.create_gate.clear()
    server.index_gate.clear()
    listing = asyncio.ensure_future(listed(server, "seat.x.*"))
    await asyncio.sleep(0.01)

    assert sorted(server.verbs()) == ["CONSUMER.CREATE", "STREAM.INFO"]
    bodies = dict(server.bodies)
    assert bodies["STREAM.INFO"]["subjects_filter"] == "$KV.crewlet_scripted.seat.x.*"
    assert bodies["CONSUMER.CREATE"]["config"]["filter_subject"] == "$KV.crewlet_scripted.seat.x.*"
    server.create_gate.set()
    server.index_gate.set()
    assert await listing == {}


@pytest.mark.parametrize(
    ("answer", "held"),
    [(live("seat.a", 9), {"seat.a": 9}), (marker("seat.a", 9), {}), (None, {})],
    ids=["live again", "removed", "gone"],
)
@pytest.mark.spec("C-027")
async def test_of_a_key_shown_as_removed_the_leaders_answer_is_held(
    server: BucketServer, answer: Stored | None, held: dict[str, int]
) -> None:
    server.shows = [marker("seat.a", 4)]
    server.named("seat.a")
    server.holds = {} if answer is None else {"seat.a": answer}

    assert await listed(server) == held
    assert server.read() == ["seat.a"]


@pytest.mark.spec("C-028")
async def test_a_key_shown_as_removed_that_the_index_does_not_name_is_absent_unread(server: BucketServer) -> None:
    server.shows = [marker("seat.a", 4), live("seat.b", 5)]
    server.named("seat.b")

    assert await listed(server) == {"seat.b": 5}
    assert server.read() == []


@pytest.mark.spec("C-042")
async def test_a_key_that_is_shown_twice_is_listed_once_at_its_newest(server: BucketServer) -> None:
    server.shows = [live("seat.a", 1), live("seat.b", 2), live("seat.a", 8)]
    server.named("seat.a", "seat.b")

    assert await listed(server) == {"seat.a": 8, "seat.b": 2}


@pytest.mark.spec("C-043")
async def test_a_record_that_only_a_member_behind_still_shows_is_over(server: BucketServer) -> None:
    server.last_seq = 50
    server.shows = [live("seat.removed_before", 40), live("seat.written_since", 51)]
    server.named()

    assert await listed(server) == {"seat.written_since": 51}


@pytest.mark.spec("C-023", "C-041")
async def test_an_index_without_a_leader_is_refused(server: BucketServer) -> None:
    server.shows = [live("seat.a", 1)]
    server.named("seat.a")
    server.leader = ""

    with pytest.raises(Unavailable, match="no leader"):
        await listed(server)
    assert server.consumers == {}


@pytest.mark.spec("C-029", "C-031")
async def test_a_pass_that_goes_quiet_ends_after_five_seconds_and_the_rest_is_read(server: BucketServer) -> None:
    server.shows, server.pending = [live("seat.a", 1)], 3
    server.named("seat.a", "seat.b", "seat.c")
    server.holds = {"seat.b": live("seat.b", 7)}
    began = now_s()

    assert await listed(server) == {"seat.a": 1, "seat.b": 7}
    assert now_s() - began == pytest.approx(limits.LISTING_QUIET_S, abs=0.01)
    assert server.read() == ["seat.b", "seat.c"]


@pytest.mark.spec("C-032")
async def test_a_pass_that_is_never_shown_anything_ends_as_soon(server: BucketServer) -> None:
    server.pending = 3
    server.named()
    began = now_s()

    assert await listed(server) == {}
    assert now_s() - began == pytest.approx(limits.LISTING_QUIET_S, abs=0.01)


@pytest.mark.spec("C-030")
async def test_every_delivery_starts_the_five_seconds_again(server: BucketServer) -> None:
    server.pending = 9
    server.named("seat.s0", "seat.s1", "seat.s2", "seat.s3")
    began = now_s()
    listing = asyncio.ensure_future(listed(server))
    for number in range(4):
        await asyncio.sleep(limits.LISTING_QUIET_S - 0.1)
        server.show(live(f"seat.s{number}", number + 1))

    assert await listing == {f"seat.s{number}": number + 1 for number in range(4)}
    assert now_s() - began == pytest.approx(4 * (limits.LISTING_QUIET_S - 0.1) + limits.LISTING_QUIET_S, abs=0.1)
    assert server.read() == []


@pytest.mark.spec("C-029")
async def test_a_heartbeat_is_no_delivery(server: BucketServer) -> None:
    server.pending = 3
    server.named()
    began = now_s()
    listing = asyncio.ensure_future(listed(server))
    for _ in range(4):
        await asyncio.sleep(1.0)
        server.beat()

    assert await listing == {}
    assert now_s() - began == pytest.approx(limits.LISTING_QUIET_S, abs=0.1)


@pytest.mark.spec("C-031")
async def test_a_quiet_pass_is_not_over_before_the_index_is_there(
    server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BROKER_REQUEST_TIMEOUT_S", 60.0)
    server.shows, server.pending = [live("seat.a", 1)], 3
    server.named("seat.a", "seat.late")
    server.index_gate.clear()
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(3 * limits.LISTING_QUIET_S)

    server.show(live("seat.late", 2))
    server.index_gate.set()

    assert await listing == {"seat.a": 1, "seat.late": 2}
    assert server.read() == []


@pytest.mark.spec("C-031")
async def test_the_index_ends_a_pass_that_was_quiet_long_before(server: BucketServer) -> None:
    server.pending = 3
    server.named("seat.a")
    server.holds = {"seat.a": live("seat.a", 1)}
    server.index_gate.clear()
    began = now_s()
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(3 * limits.LISTING_QUIET_S)
    server.index_gate.set()

    assert await listing == {"seat.a": 1}
    assert now_s() - began == pytest.approx(3 * limits.LISTING_QUIET_S, abs=0.1)


@pytest.mark.spec("C-046")
async def test_what_a_quiet_pass_left_is_read_a_bounded_number_at_a_time(server: BucketServer) -> None:
    keys = [f"seat.s{number}" for number in range(300)]
    server.pending, server.read_s = 300, 0.01
    server.named(*keys)
    server.holds = {key: live(key, number + 1) for number, key in enumerate(keys)}

    found = await listed(server)

    assert found == {key: number + 1 for number, key in enumerate(keys)}
    assert server.reading_at_most == limits.LISTING_READS_AT_ONCE


@pytest.mark.spec("C-043", "C-044")
async def test_a_member_that_is_behind_shows_until_it_is_level_with_the_leader(server: BucketServer) -> None:
    server.copies, server.newest = 3, 30
    server.shows = [live("seat.a", 1), live("seat.b", 2)]
    server.named("seat.a", "seat.b")
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(1.0)
    server.show(live("seat.a", 20), pending=0)
    await asyncio.sleep(1.0)
    assert not listing.done()
    server.show(live("seat.b", 30), pending=1)
    server.show(live("seat.a", 31), pending=0)

    assert await listing == {"seat.a": 31, "seat.b": 30}
    assert server.read() == []
    assert server.verbs().count("STREAM.INFO") == server.verbs().count("STREAM.MSG.GET") == 1


@pytest.mark.spec("C-043")
async def test_a_member_is_level_when_it_passed_where_the_newest_write_was_taken_away(server: BucketServer) -> None:
    server.copies, server.newest = 3, 30
    server.shows = [live("seat.a", 1)]
    server.named("seat.a")
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(0.1)
    server.beat(passed=29)
    await asyncio.sleep(0.1)
    assert not listing.done()
    server.beat(passed=34, stalled="not.yet")
    await asyncio.sleep(0.1)
    assert not listing.done()
    server.beat(passed=34)

    assert await listing == {"seat.a": 1}


@pytest.mark.spec("C-043")
async def test_where_the_member_that_shows_stays_behind_the_leader_is_asked_for_every_key(
    server: BucketServer,
) -> None:
    server.copies, server.newest = 3, 30
    server.shows = [live("seat.a", 1), live("seat.b", 2)]
    server.named("seat.a", "seat.b")
    server.holds = {"seat.a": live("seat.a", 29), "seat.b": live("seat.b", 30)}
    began = now_s()

    assert await listed(server) == {"seat.a": 29, "seat.b": 30}
    assert now_s() - began == pytest.approx(limits.LISTING_QUIET_S, abs=0.01)


@pytest.mark.spec("C-044")
async def test_of_an_empty_class_no_member_has_anything_to_be_level_with(server: BucketServer) -> None:
    server.copies = 3
    server.named()
    began = now_s()

    assert await listed(server) == {}
    assert now_s() == began


@pytest.mark.spec("C-047")
async def test_an_index_of_several_pages_is_read_to_its_end(server: BucketServer) -> None:
    server.page, server.shows = 3, [live("seat.s0", 1), live("seat.unnamed", 2)]
    server.named(*(f"seat.s{number}" for number in range(8)))
    server.holds = {f"seat.s{number}": live(f"seat.s{number}", 10 + number) for number in range(1, 8)}

    found = await listed(server)

    # A record that fell out of the pages is not lost where the pass showed it.
    assert found == {"seat.s0": 1, "seat.unnamed": 2} | {f"seat.s{number}": 10 + number for number in range(1, 8)}
    offsets = [body["offset"] for verb, body in server.bodies if verb == "STREAM.INFO"]
    assert offsets == [0, 3, 6]


async def test_the_broker_is_answered_when_it_asks_whether_to_go_on(server: BucketServer) -> None:
    server.pending = 2
    server.named("seat.a", "seat.b")
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(0.01)
    server.control("100", "FlowControl Request", reply="go-on-1")
    server.show(live("seat.a", 1))
    await asyncio.sleep(0.01)
    server.beat(stalled="go-on-2")
    server.show(live("seat.b", 2), pending=0)

    assert await listing == {"seat.a": 1, "seat.b": 2}
    assert server.published == ["go-on-1", "go-on-2"]


def _gap(server: BucketServer) -> None:
    server.show(live("seat.b", 2), delivery=3)


def _foreign(server: BucketServer) -> None:
    server.control("409", "Consumer Deleted")


def _behind(server: BucketServer) -> None:
    server.beat(delivered=5)


@pytest.mark.parametrize("happens", [_gap, _foreign, _behind, BucketServer.drop])
@pytest.mark.spec("C-014", "C-041")
async def test_a_pass_that_breaks_hands_nothing_out(
    server: BucketServer, happens: Callable[[BucketServer], None]
) -> None:
    server.shows, server.pending = [live("seat.a", 1)], 5
    server.named("seat.a", "seat.b")
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(0.01)
    began = now_s()

    happens(server)

    with pytest.raises(Unavailable):
        await listing
    assert now_s() == began
    assert server.subscriptions == {}


@pytest.mark.parametrize("verb", ["STREAM.INFO", "CONSUMER.CREATE", "STREAM.MSG.GET"])
@pytest.mark.parametrize("how", ["refused", "silent"])
@pytest.mark.spec("C-014", "C-041")
async def test_a_step_that_fails_fails_the_listing_and_leaves_nothing_behind(
    server: BucketServer, verb: str, how: str
) -> None:
    server.shows = [live("seat.a", 1)]
    server.named("seat.a", "seat.b")
    server.holds = {"seat.b": live("seat.b", 2)}
    if how == "refused":
        server.refuses[verb] = (404, 10059)
    else:
        server.silent.add(verb)
    listeners = server.listeners

    with pytest.raises(Unavailable):
        await listed(server)

    assert (server.consumers, server.subscriptions) == ({}, {})
    assert server.listeners == listeners + 1, "the store's own, and none of the pass"
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.5, 4.0, 5.05])
@pytest.mark.spec("C-014")
async def test_a_listing_that_is_given_up_leaves_nothing_behind(server: BucketServer, after_s: float) -> None:
    server.shows, server.pending, server.read_s = [live("seat.a", 1)], 5, 0.1
    server.named("seat.a", "seat.b")
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(after_s)

    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing

    assert (server.consumers, server.subscriptions) == ({}, {})
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("after_s", [0.001, 0.5])
async def test_who_gives_up_even_the_end_of_a_listing_is_not_held_and_the_end_goes_on(
    server: BucketServer, after_s: float
) -> None:
    server.shows, server.pending, server.delete_s = [live("seat.a", 1)], 5, 1.0
    server.named("seat.a", "seat.b")
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(0.01)
    listing.cancel()
    await asyncio.sleep(after_s)
    began = now_s()

    listing.cancel()
    await asyncio.wait([listing])

    assert now_s() == began
    await asyncio.sleep(server.delete_s)
    assert (server.consumers, server.subscriptions) == ({}, {})
    assert len(asyncio.all_tasks()) == 1


async def test_a_broker_that_does_not_end_a_listing_does_not_hold_its_caller(server: BucketServer) -> None:
    server.shows, server.delete_s = [live("seat.a", 1)], 4.0
    server.named("seat.a")
    began = now_s()

    assert await listed(server) == {"seat.a": 1}
    assert now_s() - began == pytest.approx(limits.LISTING_ENDS_WITHIN_S, abs=0.01)
    await asyncio.sleep(server.delete_s)
    assert (server.consumers, len(asyncio.all_tasks())) == ({}, 1)


async def test_a_consumer_that_is_made_after_its_listing_was_given_up_is_deleted_all_the_same(
    server: BucketServer,
) -> None:
    server.named()
    made = asyncio.Event()

    async def create_late(name: str) -> None:
        await asyncio.sleep(0.15)
        server.consumers[name] = {}
        made.set()

    server.create_gate.clear()
    listing = asyncio.ensure_future(listed(server))
    await asyncio.sleep(0.01)
    name = dict(server.bodies)["CONSUMER.CREATE"]["config"]["name"]
    late = asyncio.ensure_future(create_late(name))
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing

    assert made.is_set()
    assert server.consumers == {}
    await late


@pytest.mark.spec("C-014")
async def test_a_listing_that_is_fed_without_end_is_given_up_at_its_bound(server: BucketServer) -> None:
    server.pending = 1_000_000
    server.named()
    began = now_s()
    listing = asyncio.ensure_future(listed(server))
    number = 0
    while not listing.done():
        number += 1
        await asyncio.sleep(1.0)
        server.show(live("seat.a", number))

    with pytest.raises(Unavailable, match="not listed in"):
        await listing
    assert now_s() - began == pytest.approx(limits.LISTING_MAX_S, abs=2.0)
    assert server.consumers == {}


async def test_a_leader_that_is_behind_what_a_member_showed_is_not_believed(server: BucketServer) -> None:
    server.shows = [marker("seat.a", 9)]
    server.named("seat.a")
    server.holds = {"seat.a": live("seat.a", 4)}

    with pytest.raises(Unavailable, match="the leader answers revision 4, and 9 was shown"):
        await listed(server)


async def test_a_pass_goes_by_itself_where_its_end_does_not_reach_the_broker(server: BucketServer) -> None:
    server.named()
    await listed(server)

    config = dict(server.bodies)["CONSUMER.CREATE"]["config"]

    assert config["inactive_threshold"] == limits.LISTING_REAPED_AFTER_S * 1e9
    assert (config["ack_policy"], config["flow_control"], config["mem_storage"]) == ("none", True, True)
    assert config["idle_heartbeat"] == limits.LISTING_HEARTBEAT_S * 1e9


@pytest.mark.spec("C-058")
@pytest.mark.parametrize("pattern", ["", ">", "*", "*.a", ".", "seat.", "seat..a", "se at.>"])
async def test_what_names_no_class_is_refused_before_anybody_is_asked(server: BucketServer, pattern: str) -> None:
    with pytest.raises(ValueError, match="cannot be listed"):
        await server.bucket().list(pattern)
    assert server.asked == []
