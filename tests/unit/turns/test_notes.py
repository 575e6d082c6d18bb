"""What people tell a running turn, and which rounds read it."""

from __future__ import annotations

import pytest

from crewlet.events.types import AgentTurnSteered
from crewlet.inbox import Note
from crewlet.llm import ModelReply, ModelRequest, UserMessage
from crewlet.turns import NoteBox
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, call, reviews, says, submits

pytestmark = pytest.mark.virtual_time


def note(text: str = "leave the invoice alone") -> Note:
    return Note(note_id=f"id of {text}", text=text, by="operator:ada")


def told(request: ModelRequest) -> list[str]:
    return [each.text for each in request.messages if isinstance(each, UserMessage) and "A note from" in each.text]


def steered_stage(box: NoteBox, *rest: ModelReply) -> Stage:
    """A turn to which a note comes while its first reply is on its way."""

    def first(request: ModelRequest) -> ModelReply:
        box.post(note())
        return says("", call("look"))

    stage = Stage(executor=PlayedModel(first, *(rest or (submits(),))), tools=[PlayedTool("look")])
    stage.notes = box
    return stage


@pytest.mark.spec("E-133")
async def test_a_note_is_read_at_the_next_round_and_told_so() -> None:
    stage = steered_stage(NoteBox())

    await stage.run()

    first, second = stage.executor.requests
    steered = stage.only(AgentTurnSteered)
    assert (told(first), len(told(second))) == ([], 1)
    assert "leave the invoice alone" in told(second)[0]
    assert (steered.outcome, steered.phase, steered.iteration, steered.round) == ("delivered", "execute", 1, 2)
    assert (steered.note, steered.steered_by) == ("leave the invoice alone", "operator:ada")
    kept = [(each.round, each.note, each.steered_by) for each in stage.phase("execute").steers]
    assert kept == [(2, "leave the invoice alone", "operator:ada")]
    assert stage.phase("review").steers == ()


async def test_a_note_that_the_executor_read_is_known_to_the_reviewer_and_to_the_next_iteration() -> None:
    stage = steered_stage(NoteBox(), submits("draft"), submits("final"))
    stage.reviewer = PlayedModel(reviews("self_iterate", notes="again"), reviews())

    await stage.run()

    assert [len(told(each)) for each in stage.reviewer.requests] == [1, 1]
    assert len(told(stage.executor.requests[-1])) == 1
    assert len(stage.all_of(AgentTurnSteered)) == 1


@pytest.mark.spec("E-133")
async def test_a_note_that_no_round_read_expires_with_the_turn() -> None:
    box = NoteBox()

    def last(_: ModelRequest) -> ModelReply:
        box.post(note("too late"))
        return reviews()

    stage = Stage(reviewer=PlayedModel(last))
    stage.notes = box

    await stage.run()

    expired = stage.only(AgentTurnSteered)
    assert (expired.outcome, expired.note, expired.phase) == ("expired", "too late", "")
    assert not box.post(note("later still"))
