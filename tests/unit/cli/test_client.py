"""The client of a node's API tells the node's troubles from its user's own."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.cli.client import ApiClient, NodeUnreachable
from crewlet.cli.whereabouts import Whereabouts
from tests.unit.api.small_node import TOKEN, SmallNode, config, serving

pytestmark = pytest.mark.slow


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with serving(SmallNode(), config(tmp_path)) as server:
        yield server


async def test_what_fails_while_frames_are_used_is_not_taken_for_the_nodes_fault(server: ApiServer) -> None:
    """`crewlet events --follow | head -1` must not say that no node answers."""
    async with ApiClient(Whereabouts(server.url, TOKEN)) as api:
        with pytest.raises(BrokenPipeError):
            async with api.stream():
                raise BrokenPipeError


async def test_a_node_that_is_slow_is_not_called_one_that_does_not_run() -> None:
    """Nobody starts a second one for it: it is there, and its broker may be what does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as nobody_accepts:
        url = f"http://127.0.0.1:{nobody_accepts.getsockname()[1]}"

        async with ApiClient(Whereabouts(url, TOKEN), timeout_s=0.1) as api:
            with pytest.raises(NodeUnreachable, match="does not answer in time") as caught:
                await api.get("/seats")

    assert "crewlet run" not in str(caught.value)
