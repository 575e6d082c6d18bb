"""The log's suite is tested by twins with one planted fault each: the promise that each breaks must say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from crewlet.backends.memory import MemoryLog
from crewlet.base.errors import CrewletError
from crewlet.queue import Log
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.contracts import promises
from crewlet.testing.contracts.log_harness import LogHarness
from crewlet.testing.contracts.log_on_memory import MemoryLogs
from crewlet.testing.contracts.logs import LOG_SUITE
from crewlet.testing.saboteurs import LOG_SABOTEURS, LogSaboteur, planted_logs

Promise = Callable[[object, LogHarness], Awaitable[None]]

BROKEN = (AssertionError, TimeoutError, VirtualDeadlock, CrewletError, ExceptionGroup, pytest.fail.Exception)


def keep(promise: Promise, sabotage: Callable[[MemoryLog], Log] = lambda twin: twin) -> None:
    """Run one promise against twins; raises where it is broken."""

    async def run() -> None:
        async with MemoryLogs(sabotage=sabotage) as harness:
            await promise(None, harness)

    run_virtual(run())


@pytest.mark.parametrize("saboteur", LOG_SABOTEURS, ids=lambda kind: kind.__name__)
def test_the_named_promise_finds_the_saboteur_out(saboteur: type[LogSaboteur]) -> None:
    promise = cast("Promise", saboteur.caught_by)
    keep(promise)

    with pytest.raises(BROKEN):
        keep(promise, planted_logs(saboteur))


def test_every_promise_is_broken_by_a_saboteur() -> None:
    unnamed = {getattr(contract, name) for contract in LOG_SUITE for name in promises(contract)}
    unnamed -= {saboteur.caught_by for saboteur in LOG_SABOTEURS}

    assert {promise.__qualname__ for promise in unnamed} == set()
