"""A turn opens one ask and ends there."""

from __future__ import annotations

from tests.unit.turns.turn_kit import PlayedModel, Stage, ask_tool, call, says


async def test_a_second_ask_of_the_same_round_is_not_made() -> None:
    """The turn that the first answer wakes could not tell whether another is still to come."""
    ask = ask_tool("channel-9")
    executor = PlayedModel(
        says("", call("a2a_ask", handle="cto", brief="how?"), call("a2a_ask", handle="cfo", brief="?"))
    )
    stage = Stage(executor=executor, reviewer=PlayedModel(), tools=[ask])

    outcome = await stage.run()

    assert outcome.asks == ("channel-9",)
    assert len(ask.calls) == 1
    refused = stage.phase("execute").tool_executions[1]
    assert "after the answer" in refused.error
