"""The log on a scripted server: answers that are lost, late, double, or come from a leader that was cut off."""

from __future__ import annotations

import pytest

from crewlet import topics
from crewlet.backends.nats.message_headers import header_bytes
from crewlet.base.errors import Unavailable
from crewlet.queue import LogFull, LogRecord, LogUnreadable, Tail
from tests.unit.backends.log_server import LogServer

pytestmark = pytest.mark.virtual_time

SEAT = "ada"
RECORDS = [LogRecord("r", b"x")]


def published(server: LogServer) -> int:
    return server.asked.count(topics.journal(SEAT))


async def test_a_short_append_is_one_request() -> None:
    server = LogServer()

    assert await server.log().append(SEAT, RECORDS, expected=0) == 1
    assert server.asked == [topics.journal(SEAT)]


@pytest.mark.parametrize("landed", [True, False])
async def test_an_append_without_an_answer_is_tried_again_at_the_same_sequence(landed: bool) -> None:
    server = LogServer()
    server.lands_then = [False, landed]

    assert await server.log().append(SEAT, RECORDS, expected=0) == 1
    assert [kept.seq for kept in server.kept] == [1]
    assert published(server) == 3


async def test_what_the_broker_takes_for_a_repeat_is_believed_only_once_it_is_read() -> None:
    server = LogServer()
    log = server.log(append_s=1.0)
    server.duplicates_at = 7

    with pytest.raises(Unavailable):
        await log.append(SEAT, RECORDS, expected=0)


async def test_an_append_that_lost_against_one_under_way_is_tried_again() -> None:
    """The one under way may be its own, and may come to nothing."""
    server = LogServer()
    server.refusals = [(10164, "wrong last sequence"), (10164, "wrong last sequence")]

    assert await server.log().append(SEAT, RECORDS, expected=0) == 1


async def test_a_leader_that_was_cut_off_refuses_nobody() -> None:
    """It does not know the append that its refusal would go by."""
    server = LogServer()
    log = server.log(append_s=1.0)
    first = await log.append(SEAT, RECORDS, expected=0)
    second = await log.append(SEAT, RECORDS, expected=first)
    server.seen_by_cut_off = first
    server.refusals = [(10071, "wrong last sequence: 1")] * 100

    with pytest.raises(Unavailable):
        await log.append(SEAT, RECORDS, expected=second)


async def test_a_leader_that_was_cut_off_is_not_believed_about_what_was_acknowledged() -> None:
    server = LogServer()
    log = server.log()
    first = await log.append(SEAT, RECORDS, expected=0)
    await log.append(SEAT, RECORDS, expected=first)
    server.seen_by_cut_off = first

    with pytest.raises(Unavailable):
        await log.tail(SEAT)
    with pytest.raises(Unavailable):
        await log.read(SEAT)


async def test_nobody_is_believed_during_an_election() -> None:
    server = LogServer()
    log = server.log()
    await log.append(SEAT, RECORDS, expected=0)
    server.kept.clear()
    server.leader = ""

    with pytest.raises(Unavailable):
        await log.tail(SEAT)


async def test_a_log_that_others_took_away_is_believed_to_be_gone() -> None:
    server = LogServer()
    log = server.log()
    await log.append(SEAT, RECORDS, expected=0)
    server.kept.clear()

    assert await log.tail(SEAT) == Tail(0)


@pytest.mark.parametrize("is_ours", [True, False])
async def test_a_log_that_has_gone_is_asked_about_once(is_ours: bool) -> None:
    server = LogServer()
    log = server.log()
    await log.append(SEAT, RECORDS, expected=0)
    await (log if is_ours else server.log()).purge(SEAT)
    await log.tail(SEAT)
    asked = len(server.asked)

    await log.tail(SEAT)

    assert len(server.asked) == asked + 1


async def test_a_read_of_a_log_that_goes_away_meanwhile_is_unknown() -> None:
    server = LogServer()
    log = server.log()
    await log.append(SEAT, RECORDS, expected=0)
    server.goes_away_while_read = True

    with pytest.raises(Unavailable):
        await log.read(SEAT)


@pytest.mark.parametrize(("words", "at_limit"), [("maximum bytes exceeded", True), ("no space left", False)])
async def test_a_disk_that_is_full_is_told_from_a_log_at_its_limit(words: str, at_limit: bool) -> None:
    server = LogServer()
    server.refusals = [(10077, words)]

    with pytest.raises(LogFull) as refused:
        await server.log().append(SEAT, RECORDS, expected=0)

    assert (refused.value.at_limit, refused.value.sequence) == (at_limit, 0)


async def test_a_part_fits_into_what_the_broker_takes_with_room_for_its_headers() -> None:
    server = LogServer()
    server.max_payload = 10_000

    await server.log().append(SEAT, [LogRecord("r" * 200, bytes(30_000))], expected=0)

    sizes = [len(kept.data) + header_bytes(kept.headers) for kept in server.kept]
    assert len(sizes) > 3
    assert max(sizes) < 10_000


async def test_a_trim_asks_for_nothing_that_is_newest() -> None:
    server = LogServer()
    server.max_payload = 10_000
    log = server.log()
    first = await log.append(SEAT, RECORDS, expected=0)
    last = await log.append(SEAT, [LogRecord("r", bytes(30_000))], expected=first)

    await log.trim(SEAT, through=last)

    assert server.purges == [{"filter": topics.journal(SEAT), "seq": first + 1}]


async def test_a_message_of_another_layout_is_unreadable_and_no_tail_of_ours() -> None:
    server = LogServer()
    server.keep(SEAT, b"x", {"Crewlet-Write": "w", "Crewlet-Part": "3/2", "Crewlet-Record": "r"})
    log = server.log()

    assert await log.tail(SEAT) == Tail(1)
    with pytest.raises(LogUnreadable):
        await log.read(SEAT)
