"""How large a prompt is, and its parts."""

from __future__ import annotations

import pytest

from crewlet.events.types import PromptSize
from crewlet.llm import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from crewlet.turns.prompt_sections import SYSTEM_KEYS, USER_KEYS, conversation_bytes, sections_of
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, reviews, submits

pytestmark = pytest.mark.virtual_time


async def test_the_sections_of_a_phases_prompts_tile_them_exactly() -> None:
    again = PlayedModel(reviews("self_iterate", notes="Größer."), reviews())
    stage = Stage(executor=PlayedModel(submits("a"), submits("b")), reviewer=again)

    await stage.run()

    for record in (stage.phase("execute", 2), stage.phase("review", 2)):
        assert sum(each.bytes for each in record.system_sections) == len(record.system_prompt.encode())
        assert sum(each.bytes for each in record.user_sections) == len(record.user_prompt.encode())
    executed = stage.phase("execute", 2)
    assert [each.key for each in executed.system_sections] == [
        "identity",
        "company_context",
        "your_turn",
        "available_tools",
    ]
    assert [each.key for each in executed.user_sections] == ["preamble", "task", "your_answer", "prior_work"]


@pytest.mark.parametrize(
    "text", ["", "no heading at all", "## Unknown\nx\n## Task\ny", "## Task\n## Task\n", "ü\n## Task"]
)
def test_any_text_is_tiled(text: str) -> None:
    assert sum(each.bytes for each in sections_of(text, USER_KEYS)) == len(text.encode())


def test_a_heading_that_is_not_ours_belongs_to_the_part_it_is_in() -> None:
    sections = sections_of("## Background\nI was\n## Born\nthere", SYSTEM_KEYS)

    assert [each.key for each in sections] == ["background"]


@pytest.mark.spec("E-139")
async def test_each_phase_tells_the_size_of_its_opening_prompt() -> None:
    stage = Stage(tools=[PlayedTool("look")])

    await stage.run()

    executed, reviewed = stage.all_of(PromptSize)
    record = stage.phase("execute")
    assert (executed.phase, reviewed.phase, reviewed.tool_count) == ("execute", "review", 1)
    assert executed.system_bytes == len(record.system_prompt.encode())
    assert executed.user_bytes == executed.message_bytes == len(record.user_prompt.encode())
    assert (executed.tool_count, executed.tool_bytes > 500) == (2, True)
    total = executed.system_bytes + executed.message_bytes + executed.tool_bytes
    assert executed.tokens_approx == total // 4


@pytest.mark.spec("E-139")
def test_a_conversation_counts_its_texts_its_reasoning_once_and_the_arguments_of_its_calls() -> None:
    call = ToolCall("c", "look", {"n": 1})
    said = AssistantMessage(text="ab", reasoning="cde", calls=(call,), native=[{"text": "ab", "thinking": "cde"}])

    size = conversation_bytes((UserMessage("ü"), said, ToolResultMessage("c", "look", "four")))

    assert size == 2 + 2 + 3 + len('{"n":1}') + 4


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("nothing known", [("", 13)]),
        ("## Task\nDo it", [("Task", 13)]),
        ("## Task", [("Task", 7)]),
        ("Hello\n## Task\nDo it\n## Your answer\nnow\n", [("", 6), ("Task", 14), ("Your answer", 19)]),
        ("## Task\n### Task\n ## Task\n##Task\n## \n", [("Task", 37)]),
        ("## Unknown\n## Task\n## Unknown\nsaid", [("", 11), ("Task", 23)]),
    ],
)
def test_a_part_goes_from_one_known_heading_to_the_next(text: str, found: list[tuple[str, int]]) -> None:
    assert [(each.title, each.bytes) for each in sections_of(text, USER_KEYS)] == found
