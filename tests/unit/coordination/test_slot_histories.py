"""Whatever links do to three nodes that ask for one thing, nobody is told what another node is told the opposite of."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random
from typing import Literal, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from crewlet.base.errors import Unavailable
from crewlet.coordination import (
    CLAIMS,
    COOLDOWNS,
    CUSTODY,
    FIRES,
    RATE,
    REBASES,
    Cooldown,
    Cooldowns,
    Custodies,
    DeliveryClaims,
    Fires,
    RateValve,
    Rebases,
    RecordStore,
    Seen,
    Slot,
)
from crewlet.testing import run_virtual
from crewlet.testing.contracts import RecordHarness, ShiftedClock
from crewlet.testing.contracts.record_on_memory import MemoryRecords

pytestmark = pytest.mark.slow

T = TypeVar("T")
Fault = Literal["none", "lost", "cut after", "withheld", "cut", "whole", "delivered"]
Turn = list[tuple[int, Fault]]

FAULTS: tuple[Fault, ...] = ("none", "none", "lost", "cut after", "withheld", "cut", "whole", "delivered")
NODES = 3
HISTORIES = st.lists(
    st.lists(st.tuples(st.integers(0, NODES - 1), st.sampled_from(FAULTS)), min_size=1, max_size=4), max_size=6
)
"""Turn after turn: which nodes ask at once, each after something happened to its link."""

MODEST = settings(max_examples=80, deadline=None, derandomize=True, database=None)


async def spoil(records: RecordHarness, store: RecordStore, fault: Fault) -> None:
    """What happens to a node's link before it asks."""
    if fault == "lost":
        records.lose_reply(store)
    elif fault == "cut after":
        records.cut_after_write(store)
    elif fault == "withheld":
        records.withhold(store)
    elif fault == "cut":
        await records.cut(store)
    elif fault == "whole":
        await records.mend(store)
    elif fault == "delivered":
        await records.deliver(store)


async def told(
    records: RecordHarness, stores: list[RecordStore], history: list[Turn], ask: Callable[[int], Awaitable[T]]
) -> list[tuple[int, T]]:
    """Follow the history, make every link whole, and let each node ask again: all that was answered, by node."""
    answers: list[tuple[int, T]] = []

    async def asked(node: int) -> None:
        try:
            answers.append((node, await ask(node)))
        except Unavailable:
            return

    for turn in history:
        for node, fault in turn:
            await spoil(records, stores[node], fault)
        await asyncio.gather(*(asked(node) for node, _ in turn))
    # The first of the last writes may still meet what was planned for one that was never made.
    for node in (*range(NODES), *range(NODES), *range(NODES)):
        for store in stores:
            await records.mend(store)
            await records.deliver(store)
        await asked(node)
    return answers


def followed(
    slot: Slot, history: list[Turn], ask: Callable[[RecordHarness, list[RecordStore]], Callable[[int], Awaitable[T]]]
) -> list[tuple[int, T]]:
    async def run() -> list[tuple[int, T]]:
        async with MemoryRecords() as records:
            stores = [await records.client(slot) for _ in range(NODES)]
            return await told(records, stores, history, ask(records, stores))

    with capture_logs():
        return run_virtual(run())


@MODEST
@given(history=HISTORIES)
def test_a_fire_is_won_by_one_attempt_and_lost_by_the_others_for_good(history: list[Turn]) -> None:
    def ask(records: RecordHarness, stores: list[RecordStore]) -> Callable[[int], Awaitable[bool]]:
        fires = [Fires(store, records.clock) for store in stores]
        return lambda node: fires[node].claim("role:ceo", "standup", "20300102T0900", "ceo", claimant=f"n{node}")

    answers = followed(FIRES, history, ask)

    winners = {node for node, won in answers if won}
    losers = {node for node, won in answers if not won}
    assert len(winners) == 1
    assert winners | losers == set(range(NODES))
    assert not winners & losers


@MODEST
@given(history=HISTORIES)
def test_a_batch_has_one_keeper_whoever_is_asked_and_when(history: list[Turn]) -> None:
    def ask(records: RecordHarness, stores: list[RecordStore]) -> Callable[[int], Awaitable[str]]:
        custodies = [Custodies(store, records.clock) for store in stores]

        async def keeper(node: int) -> str:
            return (await custodies[node].claim("b1", keeper=f"n{node}")).keeper

        return keeper

    assert len({keeper for _, keeper in followed(CUSTODY, history, ask)}) == 1


@MODEST
@given(history=HISTORIES)
def test_a_delivery_is_the_first_for_one_reception_alone(history: list[Turn]) -> None:
    def ask(records: RecordHarness, stores: list[RecordStore]) -> Callable[[int], Awaitable[Seen]]:
        claims = [DeliveryClaims(store, records.clock) for store in stores]
        return lambda node: claims[node].claim("github", "d1", claimant=f"n{node}", ttl_s=1800.0)

    answers = followed(CLAIMS, history, ask)

    first = {node for node, seen in answers if seen is Seen.FIRST}
    before = {node for node, seen in answers if seen is Seen.BEFORE}
    assert len(first) == 1
    assert before == set(range(NODES)) - first


@MODEST
@given(history=HISTORIES)
def test_old_work_has_one_instant_whatever_the_clocks_of_its_attempts(history: list[Turn]) -> None:
    def ask(records: RecordHarness, stores: list[RecordStore]) -> Callable[[int], Awaitable[datetime]]:
        rebases = [Rebases(store, ShiftedClock(records.clock, 60.0 * node)) for node, store in enumerate(stores)]
        began_at = records.clock.now() - timedelta(days=40)

        async def instant(node: int) -> datetime:
            return (await rebases[node].instant("w1", began_at=began_at)).at

        return instant

    assert len({instant for _, instant in followed(REBASES, history, ask)}) == 1


@MODEST
@given(history=HISTORIES)
def test_a_valve_lets_no_more_through_than_its_windows_may(history: list[Turn]) -> None:
    seconds: set[int] = set()

    def ask(records: RecordHarness, stores: list[RecordStore]) -> Callable[[int], Awaitable[bool]]:
        valves = [RateValve(store, Random(node)) for node, store in enumerate(stores)]

        async def admits(node: int) -> bool:
            began = math.floor(records.now().timestamp() - 0.1)
            passes = await valves[node].admits("ceo", cap=2)
            seconds.update(range(began, math.floor(records.now().timestamp()) + 1))
            return passes

        return admits

    answers = followed(RATE, history, ask)

    assert sum(passes for _, passes in answers) <= 2 * len(seconds)


@MODEST
@given(history=HISTORIES)
def test_a_cooldown_only_ever_moves_further_away(history: list[Turn]) -> None:
    ends: list[datetime] = []

    def ask(records: RecordHarness, stores: list[RecordStore]) -> Callable[[int], Awaitable[None]]:
        cooldowns = [Cooldowns(store) for store in stores]
        began, minutes = records.clock.now(), Random(len(history))

        async def publish(node: int) -> None:
            until = began + timedelta(minutes=minutes.randint(1, 600))
            await cooldowns[node].publish(
                Cooldown(provider_key="fast", hint="0123456789ab", until=until, reason="auth", reported_by=f"n{node}")
            )
            ends.extend(each.until for each in await cooldowns[node].all())

        return publish

    followed(COOLDOWNS, history, ask)

    assert len(ends) >= 2 * NODES
    assert ends == sorted(ends)
