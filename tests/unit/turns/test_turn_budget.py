"""A turn whose budget has no room left: what it still does, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from crewlet.base.errors import Unavailable
from crewlet.events.types import TurnBudgetExhausted
from crewlet.inbox import Decision
from crewlet.turns import BudgetExhausted, RefusedWindow, Spent, TurnSetup
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, call, reviews, says, submits

pytestmark = pytest.mark.virtual_time

MIDNIGHT = datetime(2030, 1, 2, tzinfo=UTC)
WINDOW = RefusedWindow(scope="org", period="day", label="2030-01-01", spent=101, ceiling=100, resets_at=MIDNIGHT)


@dataclass
class Counting:
    """A meter that refuses the ``nth`` charge or admission, or fails it."""

    charges: Sequence[Exception | None] = ()
    admissions: Sequence[Exception | None] = ()
    charged: list[Spent] = field(default_factory=list[Spent])
    admitted: int = 0

    async def remaining(self) -> int | None:
        return None

    async def admit(self) -> None:
        self.admitted += 1
        _play(self.admissions, self.admitted)

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        self.charged.append(spent)
        _play(self.charges, len(self.charged))


def _play(lines: Sequence[Exception | None], number: int) -> None:
    line = lines[number - 1] if number <= len(lines) else None
    if line is not None:
        raise line


@dataclass
class Budgeted(Stage):
    meter: Counting = field(default_factory=Counting)

    def setup(self) -> TurnSetup:
        return replace(super().setup(), meter=self.meter)


def calling_twice() -> PlayedModel:
    return PlayedModel(says("", call("look")), says("", call("look", again=1)), submits())


@pytest.mark.spec("C-172")
async def test_a_refused_reply_has_none_of_its_calls_made_and_no_model_is_asked_any_more() -> None:
    look = PlayedTool("look")
    refusal = BudgetExhausted((WINDOW,))
    stage = Budgeted(executor=calling_twice(), tools=[look], meter=Counting(charges=(None, refusal)))

    outcome = await stage.run()

    assert len(look.calls) == 1
    assert len(stage.executor.requests) == 2
    assert stage.reviewer.requests == []
    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, False, "budget_exhausted")


@pytest.mark.spec("C-172")
async def test_a_turn_without_room_asks_no_model_at_all() -> None:
    stage = Budgeted(meter=Counting(admissions=(BudgetExhausted((WINDOW,)),)))

    outcome = await stage.run()

    assert stage.executor.requests == []
    assert stage.meter.charged == []
    assert outcome.error_kind == "budget_exhausted"


@pytest.mark.spec("E-136")
async def test_a_turn_that_a_budget_ended_names_scope_and_window() -> None:
    stage = Budgeted(meter=Counting(charges=(BudgetExhausted((WINDOW,)),)))

    await stage.run()

    said = stage.only(TurnBudgetExhausted)
    assert (said.scope, said.period, said.label, said.spent, said.ceiling) == ("org", "day", "2030-01-01", 101, 100)
    assert said.resets_at == MIDNIGHT
    assert said.error == stage.completed.error
    assert stage.phase("execute").error_kind == "budget_exhausted"
    assert (stage.completed.failed, stage.completed.redelivered) == (True, True)


async def test_a_reply_that_could_not_be_counted_is_an_outage_that_speaks_of_no_budget() -> None:
    stage = Budgeted(meter=Counting(charges=(Unavailable("the store is away"),)))

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (False, "unavailable")
    assert "budget" not in outcome.error
    assert "budget_exhausted" not in stage.types
    assert stage.completed.redelivered


async def test_each_reply_is_charged_once_under_the_turns_id_and_its_number() -> None:
    stage = Budgeted(executor=calling_twice(), tools=[PlayedTool("look")])

    outcome = await stage.run()

    assert [(each.lane, each.number) for each in stage.meter.charged] == [(outcome.turn_id, n) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("costs", "execute", "whole"),
    [((0.25, 0.5, 1.0), 0.75, 1.75), ((0.25, None, 1.0), None, None), ((0.0, 0.0, 0.0), 0.0, 0.0)],
)
async def test_a_turn_costs_what_its_replies_cost_and_an_unknown_price_makes_it_unknown(
    costs: tuple[float | None, ...], execute: float | None, whole: float | None
) -> None:
    first, second, last = costs
    stage = Stage(
        executor=PlayedModel(replace(says("", call("look")), cost_usd=first), replace(submits(), cost_usd=second)),
        reviewer=PlayedModel(replace(reviews(), cost_usd=last)),
        tools=[PlayedTool("look")],
    )

    await stage.run()

    assert stage.phase("execute").cost_usd == execute
    assert [each.cost_usd for each in stage.phase("execute").rounds] == [first, second]
    assert stage.phase("review").cost_usd == last
    assert stage.completed.cost_usd == whole


async def test_a_turn_that_asked_no_model_has_no_cost() -> None:
    stage = Budgeted(meter=Counting(admissions=(BudgetExhausted((WINDOW,)),)))

    await stage.run()

    assert stage.completed.cost_usd is None
