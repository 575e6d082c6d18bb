"""The company that is measured: agent seats without tool servers, on a scripted model that answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crewlet.testing.engine_files import EngineFiles, write_engine_files

__all__ = ["handle", "write_company", "write_example"]

_EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "company"
_LOGGING = {"level": "info", "format": "json"}
_SCRIPT = """\
delay_ms: {delay_ms}
replies:
  - when: {{phase: execute}}
    say: The smallest thing that a customer can use by Friday, and then we measure whether anybody does.
"""


def handle(number: int) -> str:
    """The handle of a seat, from 0."""
    return f"worker-{number}"


def write_company(
    directory: Path,
    *,
    seats: int,
    node: Mapping[str, Any] | None = None,
    delay_ms: int = 0,
    token_budget: Mapping[str, Any] | None = None,
) -> EngineFiles:
    """The files of a company of ``seats`` agents, with a port of its own; their model takes ``delay_ms`` to answer.

    ``node`` replaces whole sections of the node file; ``token_budget`` are ceilings of the company and of each seat.
    """
    roles = [
        {
            "name": f"Worker {number}",
            "handle": handle(number),
            "goal": "Do what is asked, and say what was not done.",
            "responsibilities": ["Answer whoever asks."],
            "llm": ["offline"],
            **({} if token_budget is None else {"token_budget": dict(token_budget)}),
        }
        for number in range(seats)
    ]
    company: dict[str, Any] = {
        "name": "Measured",
        "mission": "Be measured.",
        "providers": {"llm": {"offline": {"type": "scripted", "script": "script.yaml"}}},
        "roles": roles,
        **({} if token_budget is None else {"token_budget": dict(token_budget)}),
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "script.yaml").write_text(_SCRIPT.format(delay_ms=delay_ms), encoding="utf-8")
    return asyncio.run(write_engine_files(directory, company, node={"logging": _LOGGING, **(node or {})}))


def write_example(directory: Path) -> EngineFiles:
    """The example company, copied to run beside the one that a person may be running."""
    files = asyncio.run(write_engine_files(directory, {}, node={"logging": _LOGGING}))
    for source in _EXAMPLE.iterdir():
        if source.is_file() and source.name != files.node_file.name:
            (directory / source.name).write_bytes(source.read_bytes())
    return files
