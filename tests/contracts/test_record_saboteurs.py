"""The record store's suite is tested by twins with one planted fault each: the promise that each breaks must say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from crewlet.backends.memory import MemoryRecordStore
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import RecordStore
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.contracts import RECORD_SUITE, RecordHarness, promises
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.saboteurs import RECORD_SABOTEURS, RecordSaboteur, planted_records

Promise = Callable[[object, RecordHarness], Awaitable[None]]

BROKEN = (AssertionError, TimeoutError, VirtualDeadlock, Conflict, Unavailable, pytest.fail.Exception)


def keep(promise: Promise, sabotage: Callable[[MemoryRecordStore], RecordStore] = lambda twin: twin) -> None:
    """Run one promise against twins; raises where it is broken."""

    async def run() -> None:
        async with MemoryRecords(sabotage=sabotage) as harness:
            await promise(None, harness)

    run_virtual(run())


@pytest.mark.parametrize("saboteur", RECORD_SABOTEURS, ids=lambda kind: kind.__name__)
def test_the_named_promise_finds_the_saboteur_out(saboteur: type[RecordSaboteur]) -> None:
    promise = cast("Promise", saboteur.caught_by)
    keep(promise)

    with pytest.raises(BROKEN):
        keep(promise, planted_records(saboteur))


def test_every_promise_is_broken_by_a_saboteur() -> None:
    unnamed = {getattr(contract, name) for contract in RECORD_SUITE for name in promises(contract)}
    unnamed -= {saboteur.caught_by for saboteur in RECORD_SABOTEURS}

    assert {promise.__qualname__ for promise in unnamed} == set()
