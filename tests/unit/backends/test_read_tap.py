"""Bytes on their way past the library's read loop: none overtakes another."""

from __future__ import annotations

from crewlet.backends.nats.read_tap import ReadTap


class Reading:
    """A tap whose taker takes capital letters up to the first that is none."""

    def __init__(self) -> None:
        self.taken = b""
        self.kept = b""
        self.tap = ReadTap(self._take, self._keep)

    def _take(self, data: bytes) -> bytes:
        rest = data.lstrip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        self.taken += data[: len(data) - len(rest)]
        return rest

    def _keep(self, data: bytes) -> None:
        self.kept += data

    @property
    def both(self) -> tuple[bytes, bytes]:
        return self.taken, self.kept


def test_what_can_be_taken_goes_past_a_library_that_waits() -> None:
    reading = Reading()
    reading.tap.wait()

    reading.tap.feed(b"AB")
    reading.tap.feed(b"C")

    assert reading.both == (b"ABC", b"")


def test_nothing_goes_past_a_library_that_does_not_wait_yet() -> None:
    reading = Reading()

    reading.tap.feed(b"AB")

    assert reading.both == (b"", b"AB")


def test_nothing_goes_past_what_the_library_has_not_read() -> None:
    reading = Reading()
    reading.tap.wait()

    reading.tap.feed(b"Aok")
    reading.tap.feed(b"B")

    assert reading.both == (b"A", b"okB")


def test_nothing_goes_past_what_the_library_has_read_and_works_on() -> None:
    reading = Reading()
    reading.tap.wait()
    reading.tap.feed(b"Aok")
    reading.tap.go_on()

    reading.tap.feed(b"B")

    assert reading.both == (b"A", b"okB")


def test_once_the_library_has_caught_up_things_go_past_it_again() -> None:
    reading = Reading()
    reading.tap.wait()
    reading.tap.feed(b"Aok")
    reading.tap.go_on()
    reading.tap.wait()

    reading.tap.feed(b"B")

    assert reading.both == (b"AB", b"ok")
