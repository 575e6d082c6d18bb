"""Writing to a stream whose reader has gone, or whose disk is full."""

from __future__ import annotations

import errno
import io
import os

from crewlet.base.standard_streams import LastingStream


def test_what_is_written_while_somebody_reads_arrives() -> None:
    under = io.StringIO()
    stream = LastingStream(under)

    stream.write("a line\n")
    stream.flush()

    assert under.getvalue() == "a line\n"


def test_a_reader_that_has_gone_costs_what_is_written_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1, encoding="utf-8") as under:
        stream = LastingStream(under)
        for _ in range(3):
            stream.write("nobody hears\n")
            stream.flush()

        under.write("and at its end the interpreter flushes without an error\n")


class Full(io.StringIO):
    """The disk under it has no room, until it has again."""

    room = False

    def write(self, text: str) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_a_full_disk_costs_what_is_written_until_there_is_room_again() -> None:
    under = Full()
    stream = LastingStream(under)
    stream.write("lost\n")
    under.room = True

    stream.write("a line\n")

    assert under.getvalue() == "a line\n"


def test_a_closed_stream_takes_nothing() -> None:
    under = io.StringIO()
    under.close()

    assert LastingStream(under).write("late\n") == 0
