"""The suite is tested by twins with one planted fault each: the promise that each breaks must say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from crewlet.backends.memory import MemoryQueue
from crewlet.queue import EventQueue
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.contracts import (
    QUEUE_SUITE,
    BatchSettlement,
    DeadLetters,
    QueueHarness,
    ServingOrder,
    TakeOver,
    promises,
)
from crewlet.testing.contracts.queue_on_memory import MemoryHarness
from crewlet.testing.saboteurs import QUEUE_SABOTEURS, QueueSaboteur, planted

Promise = Callable[[object, QueueHarness], Awaitable[None]]

UNPLANTED = {
    ServingOrder.test_the_pause_after_a_failure_doubles_up_to_its_bound: "the twin declares this absent",
    TakeOver.test_what_a_holder_had_on_its_last_delivery_when_it_died_becomes_a_dead_letter: "as the next",
    TakeOver.test_after_a_release_the_ack_clock_is_what_it_was: "the clock is the broker's, out of a client's reach",
    DeadLetters.test_what_is_no_event_is_buried_at_once_and_holds_nobody_up: "no handler sees what is no event",
    BatchSettlement.test_what_is_no_event_is_buried_and_the_haul_goes_on: "as above",
}
"""The promises that no saboteur breaks, and why."""

BROKEN = (AssertionError, TimeoutError, VirtualDeadlock, RuntimeError, ValueError, pytest.fail.Exception)


def keep(promise: Promise, sabotage: Callable[[MemoryQueue], EventQueue] = lambda twin: twin) -> None:
    """Run one promise against twins; raises where it is broken."""

    async def run() -> None:
        async with MemoryHarness(sabotage=sabotage) as harness:
            await promise(None, harness)

    run_virtual(run())


@pytest.mark.parametrize("saboteur", QUEUE_SABOTEURS, ids=lambda kind: kind.__name__)
def test_the_named_promise_finds_the_saboteur_out(saboteur: type[QueueSaboteur]) -> None:
    promise = cast("Promise", saboteur.caught_by)
    keep(promise)

    with pytest.raises(BROKEN):
        keep(promise, planted(saboteur))


def test_every_promise_is_broken_by_a_saboteur_or_said_why_not() -> None:
    unnamed = {getattr(contract, name) for contract in QUEUE_SUITE for name in promises(contract)}
    unnamed -= {saboteur.caught_by for saboteur in QUEUE_SABOTEURS}

    assert {promise.__qualname__ for promise in unnamed} == {promise.__qualname__ for promise in UNPLANTED}
