"""A company that uses no real model never loads a vendor's SDK."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
from crewlet.base.clock import SystemClock
from crewlet.llm import ModelRequest, ProviderConfig, ScriptedModel, UserMessage, build_models, parse_script
model = ScriptedModel("offline", parse_script("replies: [{say: hi}]"))
asyncio.run(model.complete(ModelRequest("", (UserMessage("hi"),))))
claude = ProviderConfig(key="claude", type="anthropic", model="m", api_keys=("${K}",))
asyncio.run(build_models([claude], resolve=lambda text: "k", clock=SystemClock()).aclose())
heavy = ("pydantic_ai", "genai_prices", "openai", "anthropic", "httpx", "httpx2")
print([name for name in heavy if name in sys.modules])
"""


@pytest.mark.slow
def test_scripts_run_and_models_are_built_without_any_sdk() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=True)

    assert done.stdout.strip() == "[]"
