"""Workers in a real engine: what a company document says of them is what they do, on record and on the counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import running_engine
from tests.e2e.companies import company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Json = dict[str, Any]
_USAGE = {"input_tokens": 30, "output_tokens": 10}


def _task(name: str, **more: object) -> Json:
    return {"id": name, "prompt": f"look for {name}", "worker": "reader", **more}


async def test_the_workers_of_a_turn_are_on_record_and_every_token_of_theirs_is_counted(tmp_path: Path) -> None:
    tasks = [_task("a"), _task("b"), _task("c", after=["a", "b"])]
    write_script(
        tmp_path,
        {"when": {"phase": "subagent", "system": "You read"}, "say": "found", "usage": _USAGE},
        {
            "when": {"phase": "execute", "after": "none"},
            "call": [{"tool": "delegate", "with": {"tasks": tasks}}],
            "usage": _USAGE,
        },
        {"when": {"phase": "execute", "after": "delegate"}, "say": "All found.", "usage": _USAGE},
        {"when": {"phase": "review"}, "say": "All found.", "usage": _USAGE},
    )
    document = company(
        role("ceo"),
        llm={"script": scripted()},
        token_budget={"month": 1_000_000},
        workers={"reader": {"description": "Reads.", "system_prompt": "You read."}},
    )
    async with running_engine(await write_engine_files(tmp_path, document)) as engine:
        answered = await engine.api.final_message(await engine.api.send("ceo", "Find it"))
        (told,) = await engine.api.events("subagent_batched")
        payloads = await engine.api.events("agent_phase_completed")
        scopes = (await engine.api.get("/budgets"))["scopes"]

    assert answered["answer"] == "All found."
    assert told["statuses"] == {"a": "ok", "b": "ok", "c": "ok"}
    assert sorted(each["task_id"] for each in payloads if each["phase"] == "subagent") == ["a", "b", "c"]
    spent = next(found["windows"][2]["used"] for found in scopes if found["handle"] == "ceo")
    assert spent == sum(each["total_tokens"] for each in payloads) == 6 * 40
