"""The token budgets of a node put together: the counters, the meters of its turns, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random

from crewlet.base.clock import Clock
from crewlet.base.ids import Ids
from crewlet.coordination import BUDGETS, Budgets
from crewlet.node.budget_feed import BudgetFeed
from crewlet.node.budget_reading import BudgetReading
from crewlet.node.ground import Ground
from crewlet.node.turn_meter import TurnMeters
from crewlet.org import Organization

__all__ = ["Budgeting", "open_budgets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeting:
    """One node's; ``reading`` is of the company in force."""

    budgets: Budgets
    meters: TurnMeters
    reading: BudgetReading
    feed: BudgetFeed


def open_budgets(
    ground: Ground, company: Callable[[], Organization], clock: Clock, ids: Ids, stack: AsyncExitStack
) -> Budgeting:
    """Open them; ``stack`` closes them, the counters once what is charged has been counted."""
    budgets = Budgets(ground.stores[BUDGETS.name], Random(ids.hex(16)))
    stack.push_async_callback(budgets.close)
    reading = BudgetReading(budgets, company, clock)
    feed = BudgetFeed(reading, ground.writes.publish, clock, ids)
    stack.push_async_callback(feed.close)
    return Budgeting(budgets=budgets, meters=TurnMeters(budgets, clock, feed.refused), reading=reading, feed=feed)
