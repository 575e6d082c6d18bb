"""What an error says to a person, and the facts that code reads from it."""

from __future__ import annotations

import pytest

from crewlet.base import errors
from crewlet.base.errors import (
    ConfigError,
    Conflict,
    CrewletError,
    Fenced,
    PayloadTooLarge,
    Problem,
    StartRefused,
    StoppedByPerson,
)

PORT = Problem("api.port", "70000 is no port", "give 1 to 65535", line=4)
NAME = Problem("", "is empty")


def test_a_problem_names_path_problem_and_remedy() -> None:
    assert str(PORT) == "api.port: 70000 is no port (give 1 to 65535)"
    assert str(NAME) == "is empty"


def test_a_config_error_tells_every_problem_with_its_file_and_line() -> None:
    error = ConfigError(PORT, NAME, file="crewlet.yaml")

    assert str(error).splitlines() == [
        "crewlet.yaml:4: api.port: 70000 is no port (give 1 to 65535)",
        "crewlet.yaml: is empty",
    ]
    assert error.problems == (PORT, NAME)


def test_a_config_error_without_a_file_tells_the_problem_alone() -> None:
    assert str(ConfigError(PORT)) == str(PORT)


def test_a_config_error_without_a_problem_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one problem"):
        ConfigError()


def test_a_refused_start_tells_what_to_do() -> None:
    assert str(StartRefused("port 8000 is taken", "set `api.port`")) == "port 8000 is taken (set `api.port`)"
    assert str(StartRefused("port 8000 is taken")) == "port 8000 is taken"


def test_a_conflict_tells_what_was_expected_and_what_was_found() -> None:
    assert str(Conflict("a.b", expected=4, current=7)) == "'a.b': expected revision 4, found revision 7"
    assert str(Conflict("a.b", expected=0)) == "'a.b': expected revision 0, found another revision"


def test_a_message_that_is_too_large_tells_both_sizes() -> None:
    error = PayloadTooLarge("crewlet.events.x", size=9, limit=5)

    assert (error.size, error.limit) == (9, 5)
    assert "9 bytes" in str(error)
    assert "5 bytes" in str(error)


def test_a_persons_stop_is_handled_wherever_a_fence_is() -> None:
    assert issubclass(StoppedByPerson, Fenced)


def test_every_error_is_one_of_ours() -> None:
    found = [value for name in errors.__all__ if isinstance(value := getattr(errors, name), type)]
    raised = [each for each in found if issubclass(each, BaseException)]

    assert len(raised) > 5
    assert all(issubclass(each, CrewletError) for each in raised)
