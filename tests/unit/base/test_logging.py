"""What a log line looks like, which are written, and what never stands in one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
import structlog

from crewlet.base.logging import LogFormat, LogLevel, configure_logging

LEVELS: tuple[LogLevel, ...] = ("debug", "info", "warn", "error")
FORMATS: tuple[LogFormat, ...] = ("console", "text", "json")


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def fails_with_a_key_at_hand() -> None:
    api_key = "sk-" + "very-secret"
    raise RuntimeError(f"refused after {len(api_key)} characters")


def log_a_failure() -> None:
    try:
        fails_with_a_key_at_hand()
    except RuntimeError:
        structlog.get_logger("t").exception("turn_broke", seat="ceo")


def test_a_json_line_holds_the_event_its_fields_its_level_and_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "json")
    structlog.get_logger("t").info("seat_released", seat="ceo", epoch=3)

    line = json.loads(capsys.readouterr().err)

    assert (line["event"], line["seat"], line["epoch"], line["level"]) == ("seat_released", "ceo", 3, "info")
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize("form", FORMATS)
def test_a_stack_is_shown_without_the_values_of_its_variables(
    capsys: pytest.CaptureFixture[str], form: LogFormat
) -> None:
    """A frame's variables may hold a key."""
    configure_logging("info", form)
    log_a_failure()

    written = capsys.readouterr().err

    assert "fails_with_a_key_at_hand" in written
    assert "refused after 14 characters" in written
    assert "sk-very-secret" not in written


@pytest.mark.parametrize("form", ["text", "json"])
def test_one_event_is_one_line_even_with_a_stack(capsys: pytest.CaptureFixture[str], form: LogFormat) -> None:
    configure_logging("info", form)
    log_a_failure()
    structlog.get_logger("t").info("said", text="two\nlines")

    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize("level", LEVELS)
def test_only_the_level_asked_for_and_above_is_written(capsys: pytest.CaptureFixture[str], level: LogLevel) -> None:
    configure_logging(level, "json")
    log = structlog.get_logger("t")
    for word, write in (("debug", log.debug), ("info", log.info), ("warn", log.warning), ("error", log.error)):
        write(word)

    written = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]

    assert written == list(LEVELS[LEVELS.index(level) :])


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_written_to_standard_output(capsys: pytest.CaptureFixture[str], form: LogFormat) -> None:
    """A command's result stands there, to be read by another program."""
    configure_logging("debug", form)
    structlog.get_logger("t").error("something")

    assert capsys.readouterr().out == ""


def test_what_is_not_a_terminal_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    assert not sys.stderr.isatty()
    configure_logging("info", "console")
    structlog.get_logger("t").error("something", seat="ceo")

    assert "\x1b" not in capsys.readouterr().err
