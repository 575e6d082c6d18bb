"""The budgets' suite is tested by budgets with one planted fault each: the promise that each breaks must say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from structlog.testing import capture_logs

from crewlet.base.errors import CrewletError
from crewlet.coordination import Budgets
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.contracts import promises
from crewlet.testing.contracts.budgets import (
    BUDGET_SUITE,
    BudgetContention,
    BudgetCounting,
    BudgetOutages,
    BudgetRig,
)
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.saboteurs import BUDGET_SABOTEURS, BudgetSaboteur
from tests.contracts import test_budgets_one_broker, test_budgets_three_members, test_budgets_twin

Promise = Callable[[object, BudgetRig], Awaitable[None]]

UNPLANTED = {
    BudgetCounting.test_counting_goes_on_after_a_change_of_leader: "the twin has no leader",
    BudgetContention.test_four_processes_count_exactly: "chance decides; see those who take turns",
    BudgetOutages.test_a_reply_that_was_lost_is_read_back: "the record store does that itself, and is held to it",
}
"""The promises that no saboteur breaks, and why."""

BROKEN = (AssertionError, TimeoutError, VirtualDeadlock, CrewletError, KeyError, ValueError, pytest.fail.Exception)


def keep(promise: Promise, kind: type[Budgets] = Budgets) -> None:
    """Run one promise against the twin; raises where it is broken."""

    async def run() -> None:
        async with MemoryRecords() as records:
            rig = BudgetRig(records, kind)
            try:
                await promise(None, rig)
            finally:
                await rig.close()

    # A saboteur's lines may die of it, and would say so at length.
    with capture_logs():
        run_virtual(run())


@pytest.mark.parametrize("saboteur", BUDGET_SABOTEURS, ids=lambda kind: kind.__name__)
def test_the_named_promise_finds_the_saboteur_out(saboteur: type[BudgetSaboteur]) -> None:
    promise = cast("Promise", saboteur.caught_by)
    keep(promise)

    with pytest.raises(BROKEN):
        keep(promise, saboteur)


def test_every_promise_is_broken_by_a_saboteur_or_said_why_not() -> None:
    unnamed = {getattr(contract, name) for contract in BUDGET_SUITE for name in promises(contract)}
    unnamed -= {saboteur.caught_by for saboteur in BUDGET_SABOTEURS}

    assert {promise.__qualname__ for promise in unnamed} == {promise.__qualname__ for promise in UNPLANTED}


@pytest.mark.parametrize("binding", [test_budgets_twin, test_budgets_one_broker, test_budgets_three_members])
def test_every_promise_is_bound_to_every_backend(binding: object) -> None:
    bound = [bind for name, bind in vars(binding).items() if name.startswith("Test")]

    assert [bind.__bases__ for bind in bound] == [(contract,) for contract in BUDGET_SUITE]
