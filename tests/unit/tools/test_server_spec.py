"""Specs of tool servers: compared, refused, and kept out of logs."""

from __future__ import annotations

import pytest

from crewlet.base.errors import ConfigError
from crewlet.tools import ToolServerSpec, parse_overrides


def test_equal_specs_are_one_server_and_a_changed_secret_is_another() -> None:
    def spec(token: str) -> ToolServerSpec:
        return ToolServerSpec(name="x", command="run", env={"T": token})

    assert spec("a") == spec("a")
    assert spec("a") != spec("b")


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "", "command": "run"},
        {"name": "crewlet", "command": "run"},
        {"name": "x"},
        {"name": "x", "transport": "http", "url": "ftp://there"},
        {"name": "x", "command": "run", "request_timeout_s": 0},
    ],
)
def test_a_server_that_cannot_be_reached_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        ToolServerSpec(**fields)  # type: ignore[arg-type]


def test_an_unknown_hint_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="harmless"):
        parse_overrides({"list": {"harmless": True}})


def test_a_seats_values_go_over_the_templates() -> None:
    template = ToolServerSpec(name="x", command="run", env={"A": "1", "B": "1"})

    own = template.for_seat({"B": "2"}, frozenset({"secret"}))

    assert own.env == {"A": "1", "B": "2"}
    assert not own.shared
    assert own.secrets == {"secret"}


def test_a_spec_does_not_print_its_secrets() -> None:
    spec = ToolServerSpec(
        name="x", transport="http", url="http://h/?key=hush", headers={"H": "hush"}, secrets=frozenset({"hush"})
    )

    assert "hush" not in repr(spec)
