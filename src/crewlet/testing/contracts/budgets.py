"""Every promise of the token budgets, by the noun it is about."""

from __future__ import annotations

from crewlet.testing.contracts.budget_contention import BudgetContention
from crewlet.testing.contracts.budget_counting import BudgetCounting, BudgetGate
from crewlet.testing.contracts.budget_lanes import BudgetCompletion, BudgetLaneEnds
from crewlet.testing.contracts.budget_outages import BudgetHalves, BudgetOutages
from crewlet.testing.contracts.budget_refusals import BudgetMarks, BudgetRefusals
from crewlet.testing.contracts.budget_rig import BudgetRig
from crewlet.testing.contracts.budget_turning import BudgetTurning
from crewlet.testing.contracts.contract import Contract

__all__ = [
    "BUDGET_SUITE",
    "BudgetCompletion",
    "BudgetContention",
    "BudgetCounting",
    "BudgetGate",
    "BudgetHalves",
    "BudgetLaneEnds",
    "BudgetMarks",
    "BudgetOutages",
    "BudgetRefusals",
    "BudgetRig",
    "BudgetTurning",
]

BUDGET_SUITE: tuple[type[Contract], ...] = (
    BudgetCounting,
    BudgetGate,
    BudgetRefusals,
    BudgetMarks,
    BudgetTurning,
    BudgetCompletion,
    BudgetLaneEnds,
    BudgetOutages,
    BudgetHalves,
    BudgetContention,
)
