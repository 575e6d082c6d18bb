"""The protocol's frames: nothing that is sent can break out of its frame, nothing that arrives is lost at a cut."""

from __future__ import annotations

import pytest
from nats.errors import ProtocolError

from crewlet.backends.nats.frames import FrameReader, check_pattern, publish_head, subscribe_frame, unsubscribe_frame
from crewlet.backends.nats.wire import Message
from crewlet.base import limits


def with_headers(start: bytes, block: bytes, payload: bytes) -> bytes:
    return b"HMSG %b %d %d\r\n%b%b\r\n" % (start, len(block), len(block) + len(payload), block, payload)


STREAM = (
    b"PING\r\n"
    b"MSG news.a 7 5\r\nhello\r\n"
    b"MSG news.b 8 reply.1 8\r\nMSG\r\n\r\nx\r\n"
    + with_headers(b"inbox 9", b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last: 1\r\n\r\n", b"")
    + with_headers(b"news.c 7 reply.2", b"NATS/1.0\r\nWho: Zo\xc3\xab: 2\r\n\r\n", b"hi")
    + b"MSG empty 7 0\r\n\r\n"
    b"+OK\r\n"
)


class Heard:
    """What a reader has handed on."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, Message]] = []
        self.lines: list[bytes] = []
        self.reader = FrameReader(lambda sid, message: self.messages.append((sid, message)), self._control)

    async def _control(self, line: bytes) -> None:
        self.lines.append(line)


def seen(heard: Heard) -> list[tuple[int, str, bytes, str, str, dict[str, str]]]:
    return [(sid, m.subject, m.payload, m.reply, m.status, dict(m.headers)) for sid, m in heard.messages]


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 5, 8, 13, 21, 34, 55, len(STREAM)])
async def test_frames_come_out_the_same_wherever_the_bytes_were_cut(piece_bytes: int) -> None:
    heard = Heard()

    for at in range(0, len(STREAM), piece_bytes):
        await heard.reader.parse(STREAM[at : at + piece_bytes])

    assert seen(heard) == [
        (7, "news.a", b"hello", "", "", {}),
        (8, "news.b", b"MSG\r\n\r\nx", "reply.1", "", {}),
        (9, "inbox", b"", "", "100", {"Nats-Last": "1"}),
        (7, "news.c", b"hi", "reply.2", "", {"Who": "Zoë: 2"}),
        (7, "empty", b"", "", "", {}),
    ]
    assert heard.lines == [b"PING\r\n", b"+OK\r\n"]


async def test_a_status_comes_with_its_description() -> None:
    heard = Heard()

    await heard.reader.parse(with_headers(b"inbox 9", b"NATS/1.0 409 Consumer Deleted\r\n\r\n", b""))
    await heard.reader.parse(with_headers(b"inbox 9", b"NATS/1.0 503\r\n\r\n", b""))

    assert [(m.status, m.description) for _, m in heard.messages] == [("409", "Consumer Deleted"), ("503", "")]


@pytest.mark.parametrize(
    "line",
    [
        b"MSG a 7\r\n",
        b"MSG a seven 5\r\n",
        b"MSG a 7 many\r\n",
        b"MSG a 7 -1\r\n",
        b"MSG a 7 r what 1\r\n",
        b"HMSG a 7 x 5\r\n",
        b"HMSG a 7 9 5\r\n",
    ],
)
async def test_a_frame_that_cannot_be_measured_ends_the_link(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        await Heard().reader.parse(line)


async def test_a_line_without_end_ends_the_link() -> None:
    reader = Heard().reader
    await reader.parse(b"x" * limits.WIRE_LINE_MAX_BYTES)

    with pytest.raises(ProtocolError):
        await reader.parse(b"x")


def test_a_message_is_framed_with_what_it_has() -> None:
    plain = publish_head("a.b", "", None, 5)
    full = publish_head("a.b", "r.1", {"Who": "Zoë"}, 2)

    assert plain == (b"PUB a.b  5\r\n", 5)
    assert full == (b"HPUB a.b r.1 23 25\r\nNATS/1.0\r\nWho: Zo\xc3\xab\r\n\r\n", 25)
    assert (subscribe_frame("a.*", 3), unsubscribe_frame(3)) == (b"SUB a.* 3\r\n", b"UNSUB 3\r\n")


@pytest.mark.parametrize(
    ("subject", "reply", "headers"),
    [
        ("", "", None),
        ("a b", "", None),
        ("a\r\nPUB x 0", "", None),
        ("a", "r\t1", None),
        ("a", "r\r\n", None),
        ("a", "", {"Bad Name": "x"}),
        ("a", "", {"": "x"}),
    ],
)
def test_nothing_breaks_out_of_its_frame(subject: str, reply: str, headers: dict[str, str] | None) -> None:
    with pytest.raises(ValueError, match=r"cannot be the name of a header|is not a subject"):
        publish_head(subject, reply, headers, 0)


def test_a_line_end_in_a_headers_value_becomes_a_blank() -> None:
    head, _ = publish_head("a", "", {"Why": "one\r\nForged: two"}, 0)

    assert b"\r\nWhy: one  Forged: two\r\n" in head


@pytest.mark.parametrize("pattern", ["", "a..b", ".a", "a.", "a b", "a\r\nb"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not a subject"):
        check_pattern(pattern)
