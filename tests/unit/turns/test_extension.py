"""A phase that is out of rounds and still at work: a judge may grant more."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replaced

import pytest

from crewlet.events.types import AgentPhaseCompleted, AgentPhaseStarted
from crewlet.inbox import Decision
from crewlet.llm import ModelReply, StopReason, UserMessage
from crewlet.turns import TurnConfig, TurnSetup
from crewlet.turns.judge import verdict_of
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, call, failure, says, submits

pytestmark = pytest.mark.virtual_time

SHORT = TurnConfig(max_tool_rounds=2, execute_max_tool_rounds_ceiling=5, extension_round_step=2)


@dataclass
class JudgedStage(Stage):
    judge: PlayedModel | None = None

    def setup(self) -> TurnSetup:
        return replaced(super().setup(), judge=self.judge)


def looks(n: int) -> ModelReply:
    return says(f"look {n}", call("look", n=n))


def stage_of(judge: PlayedModel, *executor: ModelReply, config: TurnConfig = SHORT) -> JudgedStage:
    return JudgedStage(executor=PlayedModel(*executor), judge=judge, tools=[PlayedTool("look")], config=config)


def judged(stage: Stage) -> list[AgentPhaseCompleted]:
    return [each for each in stage.all_of(AgentPhaseCompleted) if each.phase == "judge"]


async def test_a_phase_that_is_granted_rounds_goes_on_and_is_told_so() -> None:
    stage = stage_of(PlayedModel(says("extend 1\nIt gets there.")), looks(1), looks(2), submits("found"))

    outcome = await stage.run()

    assert (outcome.decision, outcome.artifact) == (Decision.DONE, "found")
    told = stage.executor.requests[2].messages[-1]
    assert isinstance(told, UserMessage)
    assert "granted 1 more" in told.text
    record = stage.phase("execute")
    assert (record.rescue_fired, record.max_rounds, record.round_ceiling) == (False, 3, 5)


async def test_the_judge_is_a_phase_of_its_own_under_its_host_and_is_charged() -> None:
    stage = stage_of(PlayedModel(says("extend 1\nIt gets there.")), looks(1), looks(2), submits("found"))

    await stage.run()

    (record,) = judged(stage)
    assert (record.host_phase, record.host_iteration, record.host_round) == ("execute", 1, 2)
    assert (record.decision, record.notes, record.total_tokens) == ("extend", "It gets there.", 12)
    assert [each.host_phase for each in stage.all_of(AgentPhaseStarted) if each.phase == "judge"] == ["execute"]
    assert stage.completed.input_tokens == 5 * 10


async def test_the_judge_sees_the_ask_the_latest_calls_and_the_last_words() -> None:
    judge = PlayedModel(says("rescue\nIn circles."))
    config = replaced(SHORT, max_tool_rounds=14, execute_max_tool_rounds_ceiling=20)
    stage = stage_of(judge, *[looks(n) for n in range(1, 15)], config=config)

    await stage.run()

    (request,) = judge.requests
    told = request.messages[0]
    assert isinstance(told, UserMessage)
    assert request.tools == ()
    assert "what now?" in told.text
    assert "look(n=14)" in told.text
    assert "look(n=2):" not in told.text
    assert told.text.endswith("look 14")


@pytest.mark.parametrize("line", [says("rescue\nIn circles."), failure(), says("extend 2", stop=StopReason.REFUSAL)])
async def test_whatever_is_no_grant_rescues_the_phase(line: ModelReply | Exception) -> None:
    stage = stage_of(PlayedModel(line), looks(1), looks(2))

    outcome = await stage.run()

    assert (outcome.decision, outcome.artifact) == (Decision.DONE, "look 2")
    assert stage.phase("execute").rescue_fired
    assert [each.decision for each in judged(stage)] == ["rescue"]


async def test_no_grant_goes_above_the_step_or_the_ceiling() -> None:
    judge = PlayedModel(*[says("extend 99\nMore.")] * 3)
    stage = stage_of(judge, *[looks(n) for n in range(1, 6)])

    await stage.run()

    record = stage.phase("execute")
    assert (len(judge.requests), len(record.rounds), record.max_rounds) == (2, 5, 5)
    assert record.rescue_fired


async def test_a_phase_that_answers_in_prose_in_its_last_round_is_not_judged() -> None:
    judge = PlayedModel()
    stage = stage_of(judge, looks(1), says("That is all."))

    await stage.run()

    assert (judge.requests, stage.phase("execute").rescue_fired) == ([], True)


@pytest.mark.parametrize("off", [{"extension_enabled": False}, {"execute_max_tool_rounds_ceiling": 2}])
async def test_a_company_that_grants_nothing_asks_no_judge(off: dict[str, int]) -> None:
    judge = PlayedModel()
    stage = stage_of(judge, looks(1), looks(2), config=replaced(SHORT, **off))

    await stage.run()

    assert judge.requests == []


@pytest.mark.parametrize(
    ("text", "rounds"),
    [
        ("extend 3\nwhy", 3),
        ("`extend 3`", 3),
        ("Extend by 3 rounds", 3),
        ("extend", 8),
        ("extend 0", 0),
        ("rescue", 0),
        ("I would not extend this", 0),
        ("", 0),
        ("extend 100", 8),
    ],
)
def test_only_what_plainly_grants_rounds_grants_them(text: str, rounds: int) -> None:
    assert verdict_of(says(text), most=8).rounds == rounds
