"""A turn whose providers fail: each call that hands over says so, and the last one has nobody to hand over to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from crewlet.events.types import LlmUnavailable, ProviderFallback
from crewlet.llm import Chain, FailureKind, Model, ModelReply, ModelRequest, OnDelta, OnFallback, StopReason
from crewlet.turns import Spent, TurnSetup
from crewlet.turns.round_step import PHASE_ENDING_STOPS
from tests.unit.llm.stand_ins import ToldModel
from tests.unit.turns.turn_kit import USAGE, PlayedModel, PlayedTool, Stage, call, says, submits

pytestmark = pytest.mark.virtual_time


class Chained(PlayedModel):
    """A fallback chain in a played model's place."""

    def __init__(self, *members: Model) -> None:
        super().__init__()
        self._chain = Chain(members)

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        return await self._chain.complete(request, on_delta=on_delta, on_fallback=on_fallback)


@pytest.mark.spec("E-138")
async def test_two_providers_that_fail_are_two_fallbacks_the_last_to_nobody_and_then_no_model() -> None:
    first, second = ToldModel("first", FailureKind.SERVER), ToldModel("second", FailureKind.RATE_LIMITED)
    stage = Stage(executor=Chained(first, second))

    outcome = await stage.run()

    moves = stage.all_of(ProviderFallback)
    assert [(move.from_provider_key, move.to_provider_key, move.reason) for move in moves] == [
        ("first", "second", "server"),
        ("second", "", "rate_limited"),
    ]
    assert {(move.turn_id, move.phase, move.iteration) for move in moves} == {(outcome.turn_id, "execute", 1)}
    unavailable = stage.only(LlmUnavailable)
    assert (unavailable.chain, unavailable.error) == (("first", "second"), "second failed")
    told = [kind for kind in stage.types if kind in {"provider_fallback", "llm_unavailable"}]
    assert told == ["provider_fallback", "provider_fallback", "llm_unavailable"]


class Charged:
    """Counts what a turn is charged."""

    def __init__(self) -> None:
        self.spent: list[Spent] = []

    async def remaining(self) -> int | None:
        return None

    async def admit(self) -> None:
        pass

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        self.spent.append(spent)


class ChargedStage(Stage):
    """A stage whose turns are charged."""

    def setup(self) -> TurnSetup:
        self.meter = Charged()
        return replace(super().setup(), meter=self.meter)


@pytest.mark.parametrize("stop", PHASE_ENDING_STOPS)
async def test_a_reply_that_ends_its_phase_is_charged_and_recorded_and_asked_for_once(stop: StopReason) -> None:
    executor = PlayedModel(says("Half a", call("look"), stop=stop))
    stage = ChargedStage(executor=executor, tools=[PlayedTool("look")])

    await stage.run()

    assert [(spent.usage, spent.provider_key) for spent in stage.meter.spent] == [(USAGE, "first")]
    assert stage.phase("execute").total_tokens == USAGE.total
    assert len(executor.requests) == 1


@pytest.mark.spec("E-138")
async def test_every_call_that_hands_over_says_so_anew() -> None:
    spare = PlayedModel(says("", call("look")), submits())
    stage = Stage(executor=Chained(ToldModel("first", FailureKind.TIMEOUT), spare), tools=[PlayedTool("look")])

    await stage.run()

    assert len(stage.all_of(ProviderFallback)) == 2
    assert stage.all_of(LlmUnavailable) == []
