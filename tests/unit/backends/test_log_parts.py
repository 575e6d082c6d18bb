"""How an append is cut into messages and put together again; the bytes of the layout that was released are kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crewlet.backends.nats.jetstream_types import StoredMessage
from crewlet.backends.nats.log_parts import Gathering, cut, part_of, tail_of
from crewlet.queue import Logged, LogRecord, LogUnreadable, Tail

AT = datetime(2030, 1, 1, tzinfo=UTC)
RECORDS = [LogRecord("a", b"\x00one"), LogRecord("b", b"")]
GOLDEN = bytes.fromhex("81a77265636f7264739282a26964a161a464617461c404006f6e6582a26964a162a464617461c400")


def stored(seq: int, data: bytes, headers: dict[str, str]) -> StoredMessage:
    return StoredMessage(subject="s", seq=seq, time=AT, data=data, headers=headers)


def laid(records: list[LogRecord], *, write: str, room: int, at: int) -> list[StoredMessage]:
    parts = cut(records, write=write, room=room)
    return [stored(at + n, data, part.behind(at if n else 0).headers()) for n, (part, data) in enumerate(parts)]


def gathered(messages: list[StoredMessage]) -> list[Logged]:
    gathering = Gathering("ada")
    for message in messages:
        gathering.take(message)
    return gathering.records


def test_the_layout_of_an_append_is_what_it_was() -> None:
    ((part, data),) = cut(RECORDS, write="w", room=1000)

    assert data == GOLDEN
    assert part.headers() == {"Crewlet-Write": "w", "Crewlet-Part": "1/1", "Crewlet-Record": "b"}
    assert [part.headers() for part in (p.behind(7) for p, _ in cut(RECORDS, write="w", room=30))] == [
        {"Crewlet-Write": "w", "Crewlet-Part": "1/2", "Crewlet-First": "7"},
        {"Crewlet-Write": "w", "Crewlet-Part": "2/2", "Crewlet-First": "7", "Crewlet-Record": "b"},
    ]


def test_the_layout_of_the_first_release_is_read() -> None:
    message = stored(5, GOLDEN, {"Crewlet-Write": "w", "Crewlet-Part": "1/1", "Crewlet-Record": "b"})

    assert gathered([message]) == [Logged(5, "a", b"\x00one"), Logged(5, "b", b"")]
    assert tail_of(message) == Tail(5, "b")


def test_what_a_later_release_adds_to_an_append_is_passed_over() -> None:
    later = bytes([0x82, *GOLDEN[1:], 0xA1, 0x78, 0x01])

    assert len(gathered([stored(5, later, {"Crewlet-Write": "w", "Crewlet-Part": "1/1"})])) == 2


@pytest.mark.parametrize("room", [1, 7, 39, 40, 41, 1000])
def test_an_append_is_read_as_it_was_whatever_the_room(room: int) -> None:
    messages = laid(RECORDS, write="w", room=room, at=10)

    assert all(len(message.data) <= room for message in messages)
    assert [(record.id, record.payload) for record in gathered(messages)] == [("a", b"\x00one"), ("b", b"")]


def test_of_what_was_cut_short_again_and_again_the_whole_one_is_read() -> None:
    stray = laid([LogRecord("no", bytes(100))], write="v", room=30, at=1)[:-1]
    whole = laid(RECORDS, write="w", room=30, at=20)

    assert {record.id for record in gathered([*stray, *stray, *whole])} == {"a", "b"}
    assert gathered(stray) == []


def test_what_lost_its_beginning_before_anything_that_is_read_is_over() -> None:
    headless, whole = (
        laid([LogRecord("no", bytes(100))], write="v", room=30, at=1),
        laid(RECORDS, write="w", room=99, at=9),
    )

    for lost in range(1, len(headless)):
        assert {record.id for record in gathered([*headless[lost:], *whole])} == {"a", "b"}


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_part_that_is_missing_within_is_said(missing: int) -> None:
    first, gappy = laid(RECORDS, write="v", room=99, at=1), laid([LogRecord("c", bytes(100))], write="w", room=30, at=5)
    del gappy[missing]

    with pytest.raises(LogUnreadable):
        gathered([*first, *gappy])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Crewlet-Write": "w"},
        {"Crewlet-Part": "1/1"},
        {"Crewlet-Write": "w", "Crewlet-Part": "0/1"},
        {"Crewlet-Write": "w", "Crewlet-Part": "2/1"},
        {"Crewlet-Write": "w", "Crewlet-Part": "1/1/1"},
        {"Crewlet-Write": "w", "Crewlet-Part": "1/1", "Crewlet-First": "x"},
        {"Crewlet-Write": "w", "Crewlet-Part": "1/1", "Crewlet-First": "1" * 5000},
    ],
)
def test_headers_of_no_part_are_none(headers: dict[str, str]) -> None:
    message = stored(3, GOLDEN, headers)

    assert part_of(message) is None
    assert tail_of(message) == Tail(3)
    with pytest.raises(LogUnreadable):
        gathered([message])
