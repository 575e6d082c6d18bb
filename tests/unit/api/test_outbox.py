from __future__ import annotations

from crewlet.api.outbox import Outbox


def _outbox(*, frames_max: int = 3, bytes_max: int = 1000) -> Outbox:
    return Outbox(frames_max=frames_max, bytes_max=bytes_max)


async def test_frames_come_out_in_order() -> None:
    outbox = _outbox()
    outbox.put("a")
    outbox.put("b")

    assert [await outbox.take(), await outbox.take()] == [(0, "a"), (0, "b")]


async def test_the_oldest_frames_go_first_and_their_number_is_told_once() -> None:
    outbox = _outbox()
    for frame in "abcde":
        outbox.put(frame)

    assert [await outbox.take() for _ in range(3)] == [(2, "c"), (0, "d"), (0, "e")]


async def test_few_large_frames_are_bounded_by_their_size() -> None:
    outbox = _outbox(bytes_max=10)
    outbox.put("x" * 8)
    outbox.put("y" * 8)

    assert await outbox.take() == (1, "y" * 8)


async def test_a_frame_above_the_bound_is_sent_alone() -> None:
    outbox = _outbox(bytes_max=10)
    outbox.put("a")
    outbox.put("y" * 50)

    assert await outbox.take() == (1, "y" * 50)


async def test_what_was_taken_leaves_its_room() -> None:
    outbox = _outbox(bytes_max=10)
    for _ in range(5):
        outbox.put("x" * 9)
        assert await outbox.take() == (0, "x" * 9)


async def test_after_the_last_frame_nothing_comes() -> None:
    outbox = _outbox()
    outbox.put("a")
    outbox.close("last")
    outbox.put("late")

    assert [await outbox.take() for _ in range(3)] == [(0, "a"), (0, "last"), None]


async def test_an_abandoned_outbox_gives_nothing() -> None:
    outbox = _outbox()
    outbox.put("a")
    outbox.abandon()

    assert await outbox.take() is None
