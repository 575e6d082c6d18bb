"""The model server as a process of its own, answering from a script: what a whole engine is tested against."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from crewlet.llm import FailureKind, ModelFailure, StopReason
from tests.e2e.llm.conftest import HELLO, MakeModel

pytestmark = pytest.mark.slow

SCRIPT = """
replies:
  - when: {text: hello, after: none, system: brief}
    call: [{tool: add_note, with: {text: "{last_message}"}}]
    times: 3
  - {fail: {kind: rate_limited, retry_after_s: 90}}
"""


async def test_it_serves_a_script_on_every_wire_until_it_is_told_to_stop(make_model: MakeModel, tmp_path: Path) -> None:
    script = tmp_path / "rules.yaml"
    script.write_text(SCRIPT, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "crewlet.testing.model_servers", "--script", str(script), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            urls = json.loads(await process.stdout.readline())
            models = [
                make_model("anthropic", url=urls["anthropic"]),
                make_model("openai", url=urls["openai"]),
                make_model("openai-compatible", url=urls["openai"]),
            ]
            replies = [await model.complete(HELLO) for model in models]
            with pytest.raises(ModelFailure) as caught:
                await models[0].complete(HELLO)
    finally:
        process.terminate()
        async with asyncio.timeout(10):
            code = await process.wait()

    assert [reply.stop_reason for reply in replies] == [StopReason.TOOL_USE] * 3
    assert [reply.message.calls[0].arguments for reply in replies] == [{"text": "hello"}] * 3
    assert (caught.value.kind, caught.value.retry_after_s) == (FailureKind.RATE_LIMITED, 90)
    assert code == 0
