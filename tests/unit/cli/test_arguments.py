"""What may be typed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import pytest

from crewlet.cli.arguments import parse

COMMANDS = {
    "run": ["run"],
    "run with files": ["run", "-c", "node.yaml", "--company", "c.yaml", "--log-level", "debug", "--log-format", "json"],
    "ask": ["ask", "ceo", "Hello", "--timeout", "5", "--quiet"],
    "ask elsewhere": ["ask", "ceo", "-", "--json", "--url", "http://127.0.0.1:1", "-c", "node.yaml"],
    "message": ["message", "m-1", "--json", "-c", "node.yaml"],
    "seats": ["seats", "--json"],
    "events": ["events", "-f", "--type", "org_started", "--seat", "ceo", "--limit", "5", "--json"],
    "mailboxes": ["mailboxes", "--seat", "ceo", "--json"],
    "dlq list": ["dlq", "list", "--seat", "ceo", "--topic", "a.>", "--limit", "5", "--before", "7", "--json"],
    "dlq show": ["dlq", "show", "7", "--json"],
    "dlq redrive": ["dlq", "redrive", "7", "8", "--yes"],
    "dlq redrive all": ["dlq", "redrive", "--all", "--seat", "ceo", "--yes", "--url", "http://127.0.0.1:1"],
    "dlq drop": ["dlq", "drop", "7"],
    "apply": ["apply", "company.yaml", "--check", "--json", "-c", "node.yaml"],
    "init": ["init", "here"],
    "validate": ["validate", "crewlet.yaml", "--json"],
    "schema company": ["schema", "company"],
    "schema node": ["schema", "node"],
}


@pytest.mark.parametrize("argv", COMMANDS.values(), ids=COMMANDS)
def test_a_command_names_a_function_that_exists(argv: Sequence[str]) -> None:
    command = parse(argv)

    assert callable(getattr(importlib.import_module(command.module), command.function))


def test_options_have_their_defaults() -> None:
    asked = parse(["ask", "ceo", "Hello"]).options
    events = parse(["events"]).options

    assert (asked.timeout, asked.quiet, asked.json, asked.url, asked.config) == (600, False, False, "", "")
    assert (events.follow, events.limit, events.type, events.seat) == (False, 50, "", "")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["dance"],
        ["ask", "ceo"],
        ["ask", "ceo", "Hello", "--timeout", "soon"],
        ["events", "--limit", "many"],
        ["events", "--limit", "0"],
        ["events", "--limit", "401"],
        ["schema", "world"],
        ["init"],
        ["dlq"],
        ["dlq", "show"],
        ["dlq", "list", "--limit", "0"],
        ["run", "--log-level", "loud"],
    ],
)
def test_what_is_no_command_ends_with_code_2_and_the_usage(
    argv: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: crewlet")
