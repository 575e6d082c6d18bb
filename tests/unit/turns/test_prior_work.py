"""What an iteration is told of those before it: all that was changed, and the latest of what was looked at."""

from __future__ import annotations

import pytest

from crewlet.llm import UserMessage
from crewlet.turns import TurnConfig
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, call, reviews, says, submits

pytestmark = pytest.mark.virtual_time


async def test_of_many_looks_the_latest_dozen_are_told_again_and_no_change_is_left_out() -> None:
    looks = [says("", call("look", n=n)) for n in range(20)]
    executor = PlayedModel(
        says("", call("activate_tool", name="change")),
        says("", call("change", what="the title")),
        *looks,
        submits("a"),
        submits("b"),
    )
    tools = [PlayedTool("look"), PlayedTool("change", server="board")]
    again = PlayedModel(reviews("self_iterate", notes="more"), reviews())
    stage = Stage(executor=executor, reviewer=again, tools=tools, config=TurnConfig(max_tool_rounds=30))

    await stage.run()

    told = executor.requests[-1].messages[0]
    assert isinstance(told, UserMessage)
    assert "change(what=the title): ok" in told.text
    assert "(9 earlier calls are left out)" in told.text
    assert "look(n=8)" in told.text
    assert "look(n=7)" not in told.text


async def test_long_arguments_are_told_by_their_beginning() -> None:
    executor = PlayedModel(says("", call("look", text="x" * 900, more="y" * 900)), submits("a"), submits("b"))
    again = PlayedModel(reviews("self_iterate", notes="more"), reviews())

    await Stage(executor=executor, reviewer=again, tools=[PlayedTool("look")]).run()

    told = executor.requests[-1].messages[0]
    assert isinstance(told, UserMessage)
    assert "text=" + "x" * 200 + "…, more=" + "y" * 200 + "…)" in told.text
