"""The outermost frame of the commands: exit codes, one line for each trouble, and nothing loaded that is not used."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlet.base.errors import ConfigError, Problem, StartRefused, Unavailable
from crewlet.cli import file_commands, main

HEAVY = (
    *("anthropic", "apsw", "asyncio", "fastapi", "httpx", "mcp", "msgspec", "nats", "openai", "pydantic"),
    *("pydantic_ai", "structlog", "uvicorn", "uvloop", "websockets", "yaml"),
)
HELP = f"""
import sys
from crewlet.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print([name for name in {HEAVY!r} if name in sys.modules], end.code, file=sys.stderr)
"""


def ending(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def init(options: argparse.Namespace) -> int:
        raise error

    return init


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ConfigError(Problem("api.port", "is no port"), file="crewlet.yaml"), 2, "crewlet.yaml: api.port: is no port"),
        (StartRefused("port 8000 is taken", "set `api.port`"), 1, "port 8000 is taken (set `api.port`)"),
        (Unavailable("the broker does not answer"), 1, "the broker does not answer"),
        (StartRefused("seat \x1b[2Jceo"), 1, "seat ceo"),
        (RuntimeError("a bug"), 70, "internal error: RuntimeError: a bug; set CREWLET_TRACEBACK=1 to see where"),
    ],
)
def test_a_trouble_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int, says: str
) -> None:
    monkeypatch.setattr(file_commands, "init", ending(error))

    ended = main(["init", "x"])

    said = capsys.readouterr()
    assert (ended, said.err, said.out) == (code, f"crewlet: {says}\n", "")


def test_ctrl_c_ends_as_interrupted_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(file_commands, "init", ending(KeyboardInterrupt()))

    ended = main(["init", "x"])

    assert (ended, capsys.readouterr().err) == (130, "")


def test_the_stack_of_a_fault_is_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_commands, "init", ending(RuntimeError("a bug")))
    monkeypatch.setenv("CREWLET_TRACEBACK", "1")

    with pytest.raises(RuntimeError, match="a bug"):
        main(["init", "x"])


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["ask", "--help"]])
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", HELP, *argv], capture_output=True, text=True, timeout=30, check=True)

    assert done.stderr.strip() == "[] 0"
    assert "crewlet" in done.stdout


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_gets_no_complaint() -> None:
    command = f"{sys.executable} -m crewlet schema company | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False)

    assert (done.stdout, done.stderr) == ("{", "")


@pytest.mark.slow
def test_run_without_a_company_says_how_to_begin(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "crewlet", "run"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 2
    assert "company.yaml: no company document here" in done.stderr
    assert "crewlet init" in done.stderr
    assert list(tmp_path.iterdir()) == []
