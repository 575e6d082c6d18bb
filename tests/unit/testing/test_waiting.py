"""A bounded wait returns when its condition holds and says what did not hold otherwise."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.testing import wait_until

pytestmark = pytest.mark.virtual_time


async def test_it_returns_once_a_plain_condition_holds() -> None:
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.call_later(3, reached.set)

    await wait_until(reached.is_set)

    assert 3 <= loop.time() < 3.1


async def test_it_awaits_an_async_condition() -> None:
    answers = iter([False, False, True])

    async def ask() -> bool:
        await asyncio.sleep(1)
        return next(answers)

    await wait_until(ask)

    assert list(answers) == []


async def test_it_names_what_did_not_hold_and_is_patient_with_a_busy_machine() -> None:
    with pytest.raises(TimeoutError, match=r"the seat is held did not hold within 8 s"):
        await wait_until(lambda: False, what="the seat is held", timeout_s=2)

    assert asyncio.get_running_loop().time() == pytest.approx(8)


async def test_a_promise_about_time_is_given_that_time_and_no_more() -> None:
    with pytest.raises(TimeoutError, match="did not hold within 2 s"):
        await wait_until(lambda: False, timeout_s=2, exactly=True)

    assert asyncio.get_running_loop().time() == pytest.approx(2)


async def test_a_condition_that_never_answers_is_cut_off_too() -> None:
    async def hang() -> bool:
        await asyncio.Event().wait()
        return True

    with pytest.raises(TimeoutError, match="did not hold"):
        await wait_until(hang, timeout_s=5)
