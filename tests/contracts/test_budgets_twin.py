"""Token budgets on the twin: every promise."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.contracts import budgets as budgets_suite
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from tests.contracts.binding import bound

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def budgets() -> AsyncIterator[budgets_suite.BudgetRig]:
    async with MemoryRecords() as records:
        rig = budgets_suite.BudgetRig(records)
        yield rig
        await rig.close()


globals().update(bound(budgets_suite.BUDGET_SUITE, module=__name__))
