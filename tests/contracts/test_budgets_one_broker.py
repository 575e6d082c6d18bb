"""Token budgets on one broker: every promise."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import budgets as budgets_suite
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords

pytestmark = pytest.mark.slow


@pytest.fixture
async def budgets(one_broker: Cluster) -> AsyncIterator[budgets_suite.BudgetRig]:
    async with JetStreamRecords(one_broker) as records:
        rig = budgets_suite.BudgetRig(records)
        yield rig
        await rig.close()


class TestBudgetCounting(budgets_suite.BudgetCounting): ...


class TestBudgetGate(budgets_suite.BudgetGate): ...


class TestBudgetRefusals(budgets_suite.BudgetRefusals): ...


class TestBudgetMarks(budgets_suite.BudgetMarks): ...


class TestBudgetTurning(budgets_suite.BudgetTurning): ...


class TestBudgetCompletion(budgets_suite.BudgetCompletion): ...


class TestBudgetLaneEnds(budgets_suite.BudgetLaneEnds): ...


class TestBudgetOutages(budgets_suite.BudgetOutages): ...


class TestBudgetHalves(budgets_suite.BudgetHalves): ...


class TestBudgetContention(budgets_suite.BudgetContention): ...
