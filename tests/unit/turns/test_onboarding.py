"""A seat that is new at its place in the company looks around before its first work there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import replace as replaced

import pytest
from structlog.testing import capture_logs

from crewlet.base.errors import Fenced, PayloadTooLarge, StoppedByPerson, Unavailable
from crewlet.base.ids import TurnId
from crewlet.events import Event
from crewlet.events.types import AgentPhaseCompleted, AgentPhaseStarted, TaskAssigned
from crewlet.inbox import Decision, NoJournal, Note, Opening, Reply
from crewlet.llm import FailureKind, ModelReply, ModelRequest, OnDelta, OnFallback, StopReason, UserMessage
from crewlet.tools import Annotations, Hint
from crewlet.turns import BudgetExhausted, NoMeter, NoteBox, RefusedWindow, TurnConfig, TurnSetup
from tests.unit.turns.turn_kit import (
    CountingFence,
    Line,
    PlayedModel,
    PlayedTool,
    Stage,
    call,
    event_of,
    failure,
    says,
    submits,
    trigger_from,
)

pytestmark = pytest.mark.virtual_time

READS = Annotations(read_only=Hint.YES)
BOARD = (
    PlayedTool("read_notes", server="board", annotations=READS),
    PlayedTool("add_note", server="board"),
)


class RealModel(PlayedModel):
    @property
    def is_real(self) -> bool:
        return True


@dataclass
class Marks:
    """The marks as a turn sees them: what is due, and what was done about it."""

    place: str = "place-1"
    can_mark: bool = True
    marked: list[str] = field(default_factory=list[str])
    given_back: int = 0
    asked: int = 0

    async def due(self, turn_id: str) -> str:
        self.asked += 1
        return self.place

    async def mark(self, turn_id: str, chain_hash: str) -> bool:
        if self.can_mark:
            self.marked.append(chain_hash)
        return self.can_mark

    async def give_back(self, turn_id: str) -> None:
        self.given_back += 1


@dataclass
class NewSeat(Stage):
    """A stage whose seat is new at its place."""

    onboarder: PlayedModel = field(default_factory=lambda: RealModel(marks()))
    marks: Marks = field(default_factory=Marks)
    judge: PlayedModel | None = None
    change: Callable[[TurnSetup], TurnSetup] = lambda setup: setup

    def setup(self) -> TurnSetup:
        return self.change(replaced(super().setup(), onboarder=self.onboarder, onboarding=self.marks, judge=self.judge))

    @property
    def phases(self) -> list[tuple[str, str]]:
        return [(each.phase, each.decision) for each in self.all_of(AgentPhaseCompleted)]


def marks(**arguments: object) -> ModelReply:
    return says("", call("mark_onboarded", **arguments))


def seat_with(*lines: Line, **more: object) -> NewSeat:
    return NewSeat(onboarder=RealModel(*lines), **more)  # type: ignore[arg-type]


async def test_a_new_seat_looks_around_first_and_then_works() -> None:
    stage = seat_with(marks(notes="I answer to Ada."))

    outcome = await stage.run()

    assert (outcome.decision, outcome.artifact) == (Decision.DONE, "the answer")
    assert stage.phases == [("onboarding", "onboarded"), ("execute", "delivered"), ("review", "done")]
    assert stage.marks.marked == ["place-1"]
    assert stage.phase("onboarding").notes == "I answer to Ada."
    assert [each.phase for each in stage.all_of(AgentPhaseStarted)] == ["onboarding", "execute", "review"]


async def test_a_seat_that_knows_its_place_works_at_once_and_is_told_nothing_of_it() -> None:
    stage = seat_with(marks=Marks(place=""))

    await stage.run()

    assert [phase for phase, _ in stage.phases] == ["execute", "review"]
    assert "Your onboarding" not in stage.executor.requests[0].system


@pytest.mark.parametrize(
    ("onboarder", "config"),
    [(RealModel(), TurnConfig(onboarding_max_tool_rounds=0)), (PlayedModel(), TurnConfig())],
    ids=["turned off", "a script"],
)
async def test_where_there_is_none_the_marks_are_not_even_asked(onboarder: PlayedModel, config: TurnConfig) -> None:
    stage = NewSeat(onboarder=onboarder, config=config)

    await stage.run()

    assert stage.marks.asked == 0
    assert [phase for phase, _ in stage.phases] == ["execute", "review"]


async def test_it_is_told_its_place_and_nothing_of_the_work_that_waits() -> None:
    stage = seat_with(marks(), tools=BOARD)

    await stage.run()

    (request,) = stage.onboarder.requests
    (told,) = request.messages
    assert isinstance(told, UserMessage)
    assert "what now?" not in told.text + request.system
    assert [each.name for each in request.tools] == ["mark_onboarded", "list_mcp_server_tools", "activate_tool"]
    keys = [section.key for section in stage.phase("onboarding").system_sections]
    assert keys == ["identity", "company_context", "onboarding_hint", "available_tools"]


async def test_the_one_who_works_is_told_of_it_in_its_fixed_place() -> None:
    stage = seat_with(marks(), tools=BOARD)

    await stage.run()

    keys = [section.key for section in stage.phase("execute").system_sections]
    assert keys == ["identity", "company_context", "your_turn", "onboarding_hint", "available_tools"]


async def test_it_reads_and_changes_nothing_and_what_it_activated_is_there_for_the_work() -> None:
    stage = seat_with(
        says("", call("activate_tool", name="add_note"), call("activate_tool", name="read_notes")),
        says("", call("read_notes")),
        marks(),
        tools=BOARD,
    )

    await stage.run()

    calls = {each.name: each.error for each in stage.phase("onboarding").tool_executions if each.round > 1}
    assert calls == {"read_notes": "", "mark_onboarded": ""}
    first, *_ = stage.phase("onboarding").tool_executions
    assert "add_note" in first.error
    assert {"read_notes"} == {each.name for each in stage.executor.requests[0].tools} & {"read_notes", "add_note"}


async def test_a_tool_that_joins_it_is_offered_to_it_alone() -> None:
    stage = seat_with(says("", call("keep", text="x")), marks())
    keep = PlayedTool("keep")
    stage.change = lambda setup: replaced(setup, onboarding_tools=(keep,))

    await stage.run()

    assert len(keep.calls) == 1
    assert "`keep`" in stage.onboarder.requests[0].system
    assert "keep" not in {each.name for each in stage.executor.requests[0].tools}


UNMARKED: dict[str, tuple[list[Line], str, bool]] = {
    "prose alone": ([says("Hello.")] * 3, "", True),
    "out of rounds": ([says("", call("list_mcp_server_tools", server="board"))] * 3, "", True),
    "cut off": ([says("", stop=StopReason.MAX_TOKENS)], "max_tokens", False),
    "declined": ([says("", stop=StopReason.REFUSAL)], "refusal", False),
    "too long": ([says("", stop=StopReason.CONTEXT_EXCEEDED)], "context_exceeded", False),
    "in a circle": ([says("", call("list_mcp_server_tools", server="board"))] * 8, "repeated_call", False),
}


@pytest.mark.parametrize("how", UNMARKED)
async def test_one_that_ends_otherwise_leaves_the_seat_unmarked_and_the_turn_goes_on(how: str) -> None:
    lines, error_kind, is_rescued = UNMARKED[how]
    rounds = 10 if how == "in a circle" else 3
    stage = seat_with(*lines, tools=BOARD, config=TurnConfig(onboarding_max_tool_rounds=rounds))

    with capture_logs() as logs:
        outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    record = stage.phase("onboarding")
    assert (record.decision, record.error_kind, record.rescue_fired) == ("unmarked", error_kind, is_rescued)
    assert record.failed is (error_kind != "")
    assert (stage.marks.marked, stage.marks.given_back) == ([], 1)
    assert [each["seat"] for each in logs if each["event"] == "onboarding_unmarked"] == ["ceo"]
    assert not stage.completed.failed


async def test_prose_is_answered_with_the_call_that_is_due() -> None:
    stage = seat_with(says("Hello."), marks())

    await stage.run()

    told = stage.onboarder.requests[1].messages[-1]
    assert isinstance(told, UserMessage)
    assert "`mark_onboarded`" in told.text
    assert stage.marks.marked == ["place-1"]


async def test_notes_above_the_brokers_limit_are_kept_cut() -> None:
    def small(event: Event) -> Exception | None:
        notes = getattr(event.data, "notes", "")
        return PayloadTooLarge(event.type, size=len(notes), limit=200_000) if len(notes) > 150_000 else None

    stage = seat_with(marks(notes="x" * 300_000), refuse=small)

    await stage.run()

    record = stage.phase("onboarding")
    assert (record.decision, record.notes.startswith("xxx")) == ("onboarded", True)
    assert "above the broker's limit" in record.notes


async def test_a_mark_that_cannot_be_kept_is_not_asked_for_again_and_not_said_to_stand() -> None:
    stage = seat_with(marks(), marks=Marks(can_mark=False))

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    assert (stage.phase("onboarding").decision, len(stage.onboarder.requests)) == ("unmarked", 1)


async def test_no_model_that_answers_breaks_the_turn_as_in_any_phase_and_the_claim_is_over() -> None:
    stage = seat_with(failure(FailureKind.SERVER))

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (False, "llm_unavailable")
    assert stage.phase("onboarding").failed
    assert (stage.executor.requests, stage.marks.given_back) == ([], 1)


class WrongModel(RealModel):
    """Fails as no model may."""

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        raise ZeroDivisionError


async def test_a_fault_of_the_engine_in_it_leaves_no_claim_behind() -> None:
    stage = NewSeat(onboarder=WrongModel())

    with capture_logs():
        outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (True, "unhandled_exception")
    assert stage.marks.given_back == 1


class Spent(NoMeter):
    async def admit(self) -> None:
        raise BudgetExhausted((RefusedWindow(scope="org", period="day", label="d", spent=1, ceiling=1),))


async def test_a_spent_budget_ends_the_turn_before_its_first_call() -> None:
    stage = seat_with()
    stage.change = lambda setup: replaced(setup, meter=Spent())

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (False, "budget_exhausted")
    assert (stage.onboarder.requests, stage.marks.given_back) == ([], 1)


async def test_a_seat_that_moved_takes_its_claim_with_it() -> None:
    stage = seat_with(says("", call("list_mcp_server_tools", server="board")), tools=BOARD)

    with pytest.raises(Fenced):
        await stage.run(fence=CountingFence(closes_at=2))

    assert (stage.marks.marked, stage.marks.given_back) == ([], 0)


async def test_a_turn_that_a_person_stops_ends_and_its_claim_with_it() -> None:
    stage = seat_with()

    outcome = await stage.run(fence=CountingFence(closes_at=1, error=StoppedByPerson("stopped", by="ada")))

    assert (outcome.decision, outcome.finished) == (Decision.STOPPED, True)
    assert (stage.marks.given_back, stage.executor.requests) == (1, [])


class SlowModel(RealModel):
    """Takes 100 seconds for a reply."""

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        await asyncio.sleep(100)
        return await super().complete(request)


async def test_the_time_of_a_scheduled_task_begins_with_its_work() -> None:
    look = says("", call("list_mcp_server_tools", server="board"))
    stage = NewSeat(onboarder=SlowModel(look, marks()), tools=BOARD)
    task = TaskAssigned(agent_handle="ceo", task="Report", assigned_by="scheduler", timeout_seconds=50)

    outcome = await stage.run(trigger_from(event_of(task), reply=Reply.NONE))

    assert (outcome.decision, outcome.error_kind) == (Decision.DONE, "")
    assert stage.phases == [("onboarding", "onboarded"), ("execute", "delivered"), ("review", "done")]


async def test_a_note_waits_for_the_work() -> None:
    box = NoteBox()
    stage = seat_with(marks(), notes=box)
    stage.notes.post(Note(note_id="n1", text="Be brief.", by="ada"))

    await stage.run()

    assert stage.phase("onboarding").steers == ()
    assert [each.note for each in stage.phase("execute").steers] == ["Be brief."]


async def test_a_judge_may_grant_it_rounds_up_to_a_ceiling_of_its_own() -> None:
    look = says("", call("list_mcp_server_tools", server="board"))
    judge = PlayedModel(*[says("extend 9\nIt finds its way.")] * 2)
    config = TurnConfig(onboarding_max_tool_rounds=2, onboarding_max_tool_rounds_ceiling=4, extension_round_step=9)
    stage = seat_with(look, look, look, look, tools=BOARD, judge=judge, config=config)

    await stage.run()

    record = stage.phase("onboarding")
    assert (len(record.rounds), record.max_rounds, record.round_ceiling) == (4, 4, 4)
    assert [each.host_phase for each in stage.all_of(AgentPhaseCompleted) if each.phase == "judge"] == ["onboarding"]


async def test_what_it_costs_is_the_turns() -> None:
    stage = seat_with(marks())

    await stage.run()

    assert stage.completed.input_tokens == 3 * 10
    assert (stage.completed.iterations, stage.completed.execute_model) == (1, "model-1")


async def test_a_turn_that_runs_no_phase_claims_nothing() -> None:
    stage = seat_with()

    await stage.run(trigger_from(depth=3))

    assert stage.marks.asked == 0


class ShutJournal(NoJournal):
    async def open(self, opening: Opening) -> Opening:
        raise Unavailable("the journal does not answer")


async def test_a_turn_that_cannot_open_claims_nothing_for_long() -> None:
    stage = seat_with(journal=ShutJournal(TurnId("turn-1")))

    await stage.run()

    assert (stage.marks.asked, stage.marks.given_back) == (1, 1)


async def test_what_it_read_proves_no_answer() -> None:
    stage = seat_with(
        says("", call("activate_tool", name="read_notes")), says("", call("read_notes")), marks(), tools=BOARD
    )
    stage.executor = PlayedModel(*[submits(deliveries=["read_notes"])] * 9)

    outcome = await stage.run(trigger_from(reply=Reply.TOOL))

    assert outcome.decision is Decision.FAILED
