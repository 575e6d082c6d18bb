"""Small companies for engines under test, as documents: who works there, and on which models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTES_BOARD = ROOT / "examples" / "company" / "notes_board.py"

KEYS = {"FIRST_KEY": "sk-first-0123456789abcdef", "SECOND_KEY": "sk-second-0123456789abcdef"}
"""What the entries of :func:`vendor` name, as an engine's environment."""

Json = dict[str, Any]


WITHOUT_ONBOARDING: Json = {"onboarding_max_tool_rounds": 0}


def company(*roles: Json, llm: Json, **fields: object) -> Json:
    """A company whose real models are asked for work alone, unless ``turn_engine`` says otherwise."""
    document = {"name": "Testers", "providers": {"llm": llm}, "roles": list(roles)}
    return {**document, "turn_engine": WITHOUT_ONBOARDING, **fields}


def role(handle: str, *llm: str, **fields: object) -> Json:
    return {"name": handle.upper(), "handle": handle, "llm": list(llm) or ["script"], **fields}


def scripted(file: str = "script.yaml") -> Json:
    return {"type": "scripted", "script": file}


def vendor(kind: str, base_url: str, *keys: str, **fields: object) -> Json:
    references = [f"${{{key}}}" for key in keys or ("FIRST_KEY",)]
    return {"type": kind, "model": "some-model", "base_url": base_url, "api_keys": references, **fields}


def notes_server(**fields: object) -> Json:
    return {"name": "notes", "command": sys.executable, "args": [str(NOTES_BOARD)], **fields}


def write_script(directory: Path, *replies: Json, name: str = "script.yaml", **fields: object) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(json.dumps({"replies": list(replies), **fields}), encoding="utf-8")


ECHO: Json = {
    "when": {"phase": "execute", "text": r"writes to you:\n> (?P<question>[^\n]+)"},
    "say": "You said: {question}",
}
"""A seat that answers a message with its own words."""

ASKED = r"asks you:\n> (?P<question>[^\n]+)"

ASK_CTO: list[Json] = [
    {
        "when": {
            "seat": "ceo",
            "phase": "execute",
            "woken_by": "a2a_message",
            "text": r"answers:\n> (?P<answer>[^\n]+)",
        },
        "say": "The CTO says: {answer}",
    },
    {
        "when": {"seat": "ceo", "phase": "execute", "text": r"writes to you:\n> (?P<question>[^\n]+)"},
        "call": [{"tool": "a2a_ask", "with": {"handle": "cto", "brief": "{question}"}}],
    },
    {
        "when": {"seat": "cto", "phase": "execute", "after": "none"},
        "call": [{"tool": "activate_tool", "with": {"name": "add_note"}}],
    },
    {
        "when": {"seat": "cto", "phase": "execute", "after": "activate_tool", "text": ASKED},
        "call": [{"tool": "add_note", "with": {"title": "Asked", "text": "{question}", "author": "cto"}}],
    },
    {
        "when": {"seat": "cto", "phase": "execute", "text": ASKED},
        "say": "I heard: {question}",
    },
]
"""A CEO that asks the CTO, who answers with the question, and puts it on the notes board where there is one."""
