"""Which loops of a node turn."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.node.liveness import Liveness
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time


async def liveness() -> Liveness:
    return Liveness(VirtualClock(), None, patience_s={"heartbeat": 30.0}, watched=frozenset({"heartbeat"}))


async def test_a_loop_that_turns_is_no_problem() -> None:
    node = await liveness()
    node.beat("heartbeat")

    await asyncio.sleep(30.0)

    assert node.problems() == ()


async def test_a_loop_that_stands_still_is_named() -> None:
    node = await liveness()
    node.beat("heartbeat")

    await asyncio.sleep(31.0)

    assert node.problems() == ("the heartbeat loop has not turned for 31 s",)


async def test_a_loop_of_which_nothing_is_expected_is_no_problem() -> None:
    node = await liveness()
    node.beat("renew")

    await asyncio.sleep(1000.0)

    assert node.problems() == ()
