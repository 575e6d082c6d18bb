"""Supervised tasks: none dies unheard, none outlives its owner; and bounded work on many things at once."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from structlog.testing import capture_logs

from crewlet.base.tasks import Tasks, each_at_once

pytestmark = pytest.mark.virtual_time


async def raises(error: BaseException) -> None:
    raise error


async def test_a_task_that_fails_is_logged_by_name_and_told() -> None:
    told: list[tuple[str, BaseException]] = []
    tasks = Tasks("node", on_failure=lambda name, failure: told.append((name, failure)))
    error = RuntimeError("a bug")

    with capture_logs() as logs:
        await asyncio.wait([tasks.start("renew", raises(error))])

    assert told == [("node:renew", error)]
    assert [(entry["event"], entry["task"], entry["exc_info"]) for entry in logs] == [
        ("task_failed", "node:renew", error)
    ]
    assert len(tasks) == 0


async def test_a_task_that_ends_well_or_is_cancelled_is_no_failure() -> None:
    told: list[str] = []
    tasks = Tasks("node", on_failure=lambda name, _: told.append(name))
    tasks.start("quick", asyncio.sleep(0))
    slow = tasks.start("slow", asyncio.sleep(3600))
    slow.cancel()

    with capture_logs() as logs:
        await asyncio.sleep(1)

    assert (told, logs, len(tasks)) == ([], [], 0)


async def test_closing_cancels_what_runs_and_waits_until_it_has_cleaned_up() -> None:
    cleaned: list[str] = []

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(5)
            cleaned.append("done")

    tasks = Tasks("node")
    tasks.start("work", works())
    await asyncio.sleep(0)

    await tasks.close()

    assert (cleaned, len(tasks)) == (["done"], 0)


async def test_a_task_that_fails_while_it_is_cancelled_neither_stops_the_close_nor_goes_unheard() -> None:
    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("while closing")

    tasks = Tasks("node")
    tasks.start("work", works())
    await asyncio.sleep(0)

    with capture_logs() as logs:
        await tasks.close()

    assert [entry["event"] for entry in logs] == ["task_failed"]


async def test_what_a_task_starts_while_it_is_cancelled_is_closed_too() -> None:
    tasks = Tasks("node")

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.start("farewell", asyncio.sleep(3600))

    tasks.start("work", works())
    await asyncio.sleep(0)

    await tasks.close()

    assert len(tasks) == 0


async def test_a_task_may_close_its_own_owner() -> None:
    tasks = Tasks("node")
    other = tasks.start("other", asyncio.sleep(3600))

    await tasks.start("closer", tasks.close())

    assert other.cancelled()


async def test_every_item_is_worked_with_no_more_together_than_allowed() -> None:
    together = 0
    most = 0
    worked: list[int] = []

    async def work(item: int) -> None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await asyncio.sleep(1)
        together -= 1
        worked.append(item)

    await each_at_once(range(10), work, at_once=3)

    assert (sorted(worked), most) == (list(range(10)), 3)


async def test_the_first_failure_is_raised_and_ends_the_rest() -> None:
    finished: list[int] = []
    cancelled: list[int] = []

    async def work(item: int) -> None:
        if item == 1:
            await asyncio.sleep(1)
            raise ValueError("item 1")
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        finished.append(item)

    with pytest.raises(ValueError, match="item 1"):
        await each_at_once(range(3), work, at_once=3)

    assert (finished, sorted(cancelled)) == ([], [0, 2])


async def test_work_on_nothing_is_done() -> None:
    await each_at_once([], raises, at_once=1)


async def test_cancelling_the_whole_cancels_each_and_travels_on() -> None:
    cancelled: list[int] = []

    async def work(item: int) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    whole = asyncio.create_task(each_at_once(range(2), work, at_once=2))
    await asyncio.sleep(1)
    whole.cancel()

    with pytest.raises(asyncio.CancelledError):
        await whole

    assert sorted(cancelled) == [0, 1]


async def test_a_cancellation_that_meets_a_failure_travels_on() -> None:
    began = asyncio.Event()
    fails = asyncio.Event()

    async def work(_: int) -> None:
        began.set()
        await fails.wait()
        raise ValueError("too late")

    whole = asyncio.create_task(each_at_once(range(2), work, at_once=2))
    await began.wait()
    fails.set()
    # Both have failed by now, and the whole has not heard of it.
    await asyncio.sleep(0)
    whole.cancel()

    with pytest.raises(asyncio.CancelledError):
        await whole


async def test_a_cancellation_that_makes_the_work_fail_travels_on() -> None:
    async def work(_: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("cannot be given back")

    whole = asyncio.create_task(each_at_once(range(2), work, at_once=2))
    await asyncio.sleep(1)
    whole.cancel()

    with pytest.raises(asyncio.CancelledError):
        await whole


async def test_a_failure_leaves_the_time_limit_around_it_as_it_was() -> None:
    async def goes_on_after_a_failure() -> None:
        async with asyncio.timeout(10):
            with contextlib.suppress(ValueError):
                await each_at_once([ValueError("one"), ValueError("other")], raises, at_once=2)
            await asyncio.sleep(20)

    with pytest.raises(TimeoutError):
        await goes_on_after_a_failure()


async def test_a_cancellation_while_the_rest_is_ending_waits_for_it_and_travels_on() -> None:
    ended: list[int] = []

    async def work(item: int) -> None:
        if item == 0:
            raise ValueError("the first")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ended.append(item)

    whole = asyncio.create_task(each_at_once(range(2), work, at_once=2))
    await asyncio.sleep(0.5)
    whole.cancel()

    with pytest.raises(asyncio.CancelledError):
        await whole
    assert ended == [1]


async def test_cancelling_ends_all_but_the_task_that_asks_and_waits_for_none() -> None:
    tasks = Tasks("node")
    asked = asyncio.Event()

    async def asks() -> None:
        tasks.cancel()
        await asyncio.sleep(1)
        asked.set()

    other = tasks.start("other", asyncio.Event().wait())
    tasks.start("asks", asks())
    await asyncio.sleep(2)

    assert (other.cancelled(), asked.is_set(), len(tasks)) == (True, True, 0)


async def test_closing_in_the_moment_in_which_a_task_ended_returns() -> None:
    """The task is done, but nobody has been told yet: waiting for it alone would not let anybody be told."""

    async def at_once() -> None:
        return

    tasks = Tasks("owner")
    task = tasks.start("short", at_once())
    # One turn of the loop: the task runs to its end, and we go on before its end is told.
    await asyncio.sleep(0)
    ended_untold = task.done() and len(tasks) == 1

    await tasks.close()

    assert ended_untold
    assert len(tasks) == 0
