"""A turn that broke halfway: what comes back, what does not, and what its record proves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
import structlog

from crewlet.base.errors import Conflict, PayloadTooLarge, Unavailable
from crewlet.events import Event
from crewlet.events.types import LlmUnavailable, ProviderFallback, TurnGuardBreach
from crewlet.inbox import Decision, Reply, verdict_of
from crewlet.llm import ChainExhausted, FailureKind, Fallback, ModelReply, ModelRequest, OnDelta, OnFallback, StopReason
from crewlet.tools import Annotations, CallContext, Hint, ToolResult
from crewlet.turns import TurnConfig
from tests.unit.turns.turn_kit import (
    PlayedModel,
    PlayedTool,
    Stage,
    ask_tool,
    call,
    failure,
    reviews,
    says,
    submits,
    trigger_from,
)

pytestmark = pytest.mark.virtual_time

READ_ONLY = Annotations(read_only=Hint.YES)
OPEN_WORLD = Annotations(open_world=Hint.YES)


class SlowModel(PlayedModel):
    """Answers after a day."""

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        await asyncio.sleep(86_400)
        return submits()


class SlowTool(PlayedTool):
    """Answers after a day."""

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        await asyncio.sleep(86_400)
        return ToolResult("late")


def breaks_after(tool: str) -> PlayedModel:
    return PlayedModel(says("", call("activate_tool", name=tool), call(tool)), says("cut", stop=StopReason.MAX_TOKENS))


async def test_a_chain_that_is_exhausted_says_so_and_the_trigger_comes_back() -> None:
    exhausted = ChainExhausted(("first", "second"), failure(FailureKind.RATE_LIMITED))
    handed = [
        Fallback("first", "second", FailureKind.SERVER, "500"),
        Fallback("second", "", FailureKind.RATE_LIMITED, "429"),
    ]
    stage = Stage(executor=PlayedModel(exhausted, fallbacks=handed))

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, False, "llm_unavailable")
    told = stage.only(LlmUnavailable)
    assert (told.chain, told.error_kind, told.phase) == (("first", "second"), "rate_limited", "execute")
    assert (told.error, stage.completed.error) == (str(exhausted.last), str(exhausted))
    moves = stage.all_of(ProviderFallback)
    assert [(m.from_provider_key, m.to_provider_key, m.phase, m.iteration) for m in moves] == [
        ("first", "second", "execute", 1),
        ("second", "", "execute", 1),
    ]
    assert stage.types.index("provider_fallback") < stage.types.index("llm_unavailable")
    assert stage.phase("execute").error_kind == "rate_limited"
    assert stage.completed.redelivered


@pytest.mark.parametrize("kind", [FailureKind.BAD_REQUEST, FailureKind.CONTEXT_EXCEEDED])
async def test_a_request_that_no_model_can_mend_breaks_the_turn_under_its_own_name(kind: FailureKind) -> None:
    stage = Stage(executor=PlayedModel(failure(kind)))

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (False, kind)
    assert stage.all_of(LlmUnavailable) == []
    assert stage.completed.redelivered


async def test_a_single_entry_that_does_not_answer_is_an_exhausted_chain_of_one() -> None:
    stage = Stage(reviewer=PlayedModel(failure(FailureKind.NETWORK)))

    outcome = await stage.run()

    assert outcome.error_kind == "llm_unavailable"
    assert stage.only(LlmUnavailable).chain == ("first",)
    assert (stage.phase("execute").failed, stage.phase("review").failed) == (False, True)


@pytest.mark.spec("S-126")
@pytest.mark.parametrize(
    ("tool", "proves"),
    [
        (PlayedTool("t", server="s"), True),
        (PlayedTool("t", server="s", annotations=READ_ONLY), False),
        (PlayedTool("t", ToolResult("no", is_error=True), server="s"), False),
        (PlayedTool("t", ToolResult("?", is_error=True, unknown=True), server="s"), True),
        (PlayedTool("t", TimeoutError(), server="s"), True),
        (PlayedTool("t", Unavailable("the server died"), server="s"), True),
        (PlayedTool("t", RuntimeError("a defect"), server="s"), True),
        (PlayedTool("t", Conflict("k", expected=1), server="s"), False),
        (PlayedTool("t", RuntimeError("a defect"), server="s", annotations=READ_ONLY), False),
        (PlayedTool("t"), False),
        (PlayedTool("t", annotations=OPEN_WORLD), True),
    ],
)
async def test_a_call_proves_an_effect_outside_only_by_its_kind_and_its_end(tool: PlayedTool, proves: bool) -> None:
    stage = Stage(executor=breaks_after("t"), tools=[tool])

    outcome = await stage.run()

    assert (outcome.finished, outcome.reached_outside) == (False, proves)
    assert len(tool.calls) == 1
    assert stage.completed.redelivered is not proves


@pytest.mark.spec("S-126")
async def test_the_calls_that_steer_a_turn_prove_nothing() -> None:
    served = PlayedTool("t", server="s", annotations=READ_ONLY)
    executor = PlayedModel(
        says("", call("list_mcp_server_tools", server="s"), call("activate_tool", name="t")), submits()
    )

    outcome = await Stage(executor=executor, tools=[served]).run()

    assert (outcome.decision, outcome.reached_outside) == (Decision.DONE, False)


async def test_a_store_that_is_away_inside_a_built_in_breaks_the_turn_and_proves_nothing() -> None:
    ask = PlayedTool("a2a_ask", Unavailable("the channel could not be opened"), annotations=OPEN_WORLD)
    stage = Stage(executor=PlayedModel(says("", call("a2a_ask"))), tools=[ask])

    outcome = await stage.run()

    assert (outcome.finished, outcome.reached_outside, outcome.error_kind) == (False, False, "unavailable")
    assert stage.phase("execute").tool_executions[0].error == "the channel could not be opened"
    assert stage.completed.redelivered


async def test_a_tool_that_never_answers_is_given_up_and_the_turn_goes_on() -> None:
    def too_late(_arguments: object, _context: CallContext) -> ToolResult:
        raise TimeoutError

    executor = PlayedModel(says("", call("slow")), submits())
    stage = Stage(executor=executor, tools=[PlayedTool("slow", too_late)])

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    assert "did not answer in time" in stage.phase("execute").tool_executions[0].error


@pytest.mark.spec("E-137", "S-125", "S-128")
async def test_a_fault_of_the_engine_is_an_outcome_with_a_breach_and_a_stack() -> None:
    def faulty(_request: ModelRequest) -> ModelReply:
        raise ZeroDivisionError("by zero")

    stage = Stage(executor=PlayedModel(faulty))

    with structlog.testing.capture_logs() as logs:
        outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "unhandled_exception")
    assert verdict_of(outcome, headroom=5).record
    assert stage.only(TurnGuardBreach).kind == "unhandled_exception"
    assert (stage.completed.failed, stage.completed.redelivered) == (True, False)
    assert stage.phase("execute").error == "ZeroDivisionError: by zero"
    panicked = next(line for line in logs if line["event"] == "turn_phase_panicked")
    assert panicked["exc_info"] is True


@pytest.mark.spec("S-125")
async def test_a_fault_while_the_fault_is_told_still_gives_an_outcome() -> None:
    def faulty(event: Event) -> Exception | None:
        return None if event.type == "agent_turn_started" else RuntimeError("the queue is broken too")

    outcome = await Stage(refuse=faulty).run()

    assert (outcome.finished, outcome.error_kind) == (True, "unhandled_exception")


async def test_lost_telemetry_never_ends_a_turn() -> None:
    kept = {"agent_turn_started", "agent_turn_completed"}

    def lossy(event: Event) -> Exception | None:
        return None if event.type in kept else Unavailable("no broker")

    stage = Stage(refuse=lossy)

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    assert stage.types == ["agent_turn_started", "agent_turn_completed"]


async def test_a_turn_whose_start_cannot_be_recorded_spends_nothing() -> None:
    stage = Stage(refuse=lambda event: Unavailable("no broker") if event.type == "agent_turn_started" else None)

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (False, "unavailable")
    assert stage.executor.requests == []
    assert stage.completed.redelivered


async def test_a_start_that_fails_once_is_tried_again_under_the_same_id() -> None:
    tried: list[str] = []

    def once(event: Event) -> Exception | None:
        if event.type != "agent_turn_started":
            return None
        tried.append(event.id)
        return Unavailable("no reply") if len(tried) == 1 else None

    outcome = await Stage(refuse=once).run()

    assert outcome.decision is Decision.DONE
    assert len(tried) == 2
    assert len(set(tried)) == 1


def no_completion(event: Event) -> Exception | None:
    return Unavailable("no broker") if event.type == "agent_turn_completed" else None


async def test_an_answer_that_could_not_be_recorded_was_not_given() -> None:
    outcome = await Stage(refuse=no_completion).run(trigger_from(reply=Reply.ENGINE))

    assert (outcome.finished, outcome.error_kind, outcome.artifact) == (False, "unavailable", "the answer")


async def test_work_that_nobody_waits_for_is_done_though_its_end_was_not_recorded() -> None:
    outcome = await Stage(refuse=no_completion).run(trigger_from(reply=Reply.NONE))

    assert (outcome.decision, outcome.finished) == (Decision.DONE, True)


async def test_a_turn_that_wrote_outside_is_not_run_again_for_its_lost_record() -> None:
    executor = PlayedModel(says("", call("a2a_ask")), submits())

    outcome = await Stage(executor=executor, tools=[ask_tool()], refuse=no_completion).run()

    assert (outcome.decision, outcome.finished, outcome.asks) == (Decision.DONE, True, ("channel-1",))


async def test_an_answer_above_the_brokers_limit_is_recorded_cut() -> None:
    def small(event: Event) -> Exception | None:
        artifact = getattr(event.data, "artifact", "")
        return PayloadTooLarge(event.type, size=len(artifact), limit=200_000) if len(artifact) > 150_000 else None

    stage = Stage(executor=PlayedModel(submits("x" * 300_000)), refuse=small)

    outcome = await stage.run()

    assert len(outcome.artifact) == 300_000
    assert stage.completed.artifact.endswith("limit of 200000 bytes)")
    assert len(stage.completed.artifact) < 101_000


async def test_a_phase_record_above_the_brokers_limit_is_kept_without_its_texts() -> None:
    def small(event: Event) -> Exception | None:
        large = bool(getattr(event.data, "system_prompt", ""))
        return PayloadTooLarge(event.type, size=2, limit=1) if large else None

    stage = Stage(refuse=small)

    await stage.run()

    record = stage.phase("execute")
    assert (record.system_prompt, record.total_tokens, len(record.rounds)) == ("", 12, 1)
    assert "above the broker's limit" in record.notes


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_a_call_beyond_its_backstop_is_given_up(where: str) -> None:
    config = TurnConfig(model_call_backstop_s=60, tool_call_backstop_s=60)
    stage = Stage(executor=PlayedModel(says("", call("slow")), submits()), config=config)
    stage.tools = [SlowTool("slow")]
    if where == "model":
        stage.executor = SlowModel()

    outcome = await stage.run()

    if where == "model":
        assert (outcome.finished, outcome.error_kind) == (False, "llm_unavailable")
        assert stage.only(LlmUnavailable).error_kind == "timeout"
    else:
        assert "did not answer in time" in stage.phase("execute").tool_executions[0].error


async def test_the_trigger_of_a_broken_turn_on_its_last_delivery_is_not_said_to_come_back() -> None:
    stage = Stage(executor=PlayedModel(failure()), reviewer=PlayedModel(reviews()))

    await stage.run(trigger_from(headroom=0))

    assert (stage.completed.failed, stage.completed.redelivered) == (True, False)
