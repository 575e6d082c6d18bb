"""Where the product can say something to the outside, and by which way its commands reach a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from crewlet.notify import Source, ThreadReader
from tests.tidy.tree import Module, source_modules

_CLIENTS = frozenset(
    {"aiohttp", "httpx", "httpx2", "http.client", "requests", "smtplib", "urllib.request", "websockets"}
)
_ROOMS_WITH_CLIENTS = {"cli", "llm", "testing", "tools"}

# A command of these parts would open what a running node has open.
_A_NODES_OWN = ("crewlet.backends", "crewlet.coordination", "crewlet.node", "crewlet.queue", "crewlet.store")


@pytest.mark.spec("E-209")
def test_nothing_but_models_tools_and_commands_speaks_to_the_outside() -> None:
    """What an agent says in a chat is a call of its own tool: no other room has a client to say it with."""
    rooms = {
        module.name.partition("/")[0]
        for module in source_modules()
        for name in _imported(module)
        if any(name == client or name.startswith(f"{client}.") for client in _CLIENTS)
    }

    assert rooms == _ROOMS_WITH_CLIENTS


@pytest.mark.spec("E-209")
def test_a_source_brings_what_arrives_and_takes_nothing_back() -> None:
    assert _verbs(Source) == {"name", "parse", "prompt", "threads"}
    assert _verbs(ThreadReader) == {"read"}


@pytest.mark.spec("C-216")
def test_no_command_but_run_opens_what_a_node_has_open() -> None:
    """Every other one asks a running node, over its API."""
    opening = {
        module.name
        for module in source_modules()
        if module.name.startswith("cli/") and any(name.startswith(_A_NODES_OWN) for name in _imported(module))
    }

    assert opening == {"cli/run_command.py"}


def _imported(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _verbs(protocol: type[object]) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}
