"""What of the engine's environment reaches a tool server."""

from __future__ import annotations

import pytest

from crewlet.tools.server_environment import server_environment

_NEEDED = ["PATH", "HOME", "USER", "TMPDIR", "TERM", "TZ", "LANG", "LC_ALL", "XDG_CACHE_HOME", "SSL_CERT_FILE"]


@pytest.mark.parametrize("name", [*_NEEDED, "HTTPS_PROXY", "https_proxy", "no_proxy"])
def test_what_a_program_needs_is_passed_on(name: str) -> None:
    assert server_environment({name: "value"}, {}) == {name: "value"}


@pytest.mark.parametrize(
    "name", ["ANTHROPIC_API_KEY", "CREWLET_API_TOKEN", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_PRELOAD", "path"]
)
def test_nothing_else_is(name: str) -> None:
    assert server_environment({name: "value"}, {}) == {}


def test_the_servers_own_values_win() -> None:
    assert server_environment({"HOME": "/root"}, {"HOME": "/srv", "KEY": "k"}) == {"HOME": "/srv", "KEY": "k"}
