"""Token budgets on three members: every promise."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import budgets as budgets_suite
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords
from tests.contracts.binding import bound

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
async def budgets(three_members: Cluster) -> AsyncIterator[budgets_suite.BudgetRig]:
    async with ClusterRecords(three_members) as records:
        rig = budgets_suite.BudgetRig(records)
        yield rig
        await rig.close()


globals().update(bound(budgets_suite.BUDGET_SUITE, module=__name__))
