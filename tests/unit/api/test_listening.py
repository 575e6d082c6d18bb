from __future__ import annotations

import socket
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.api.listening import listen, port_of
from crewlet.base.errors import ConfigError, StartRefused
from tests.unit.api.small_node import SmallNode, config


def _close(sockets: list[socket.socket]) -> None:
    for listener in sockets:
        listener.close()


async def test_a_port_in_use_names_address_and_remedy() -> None:
    held = await listen("127.0.0.1", 0)
    port = port_of(held)
    try:
        with pytest.raises(StartRefused) as refused:
            await listen("127.0.0.1", port)
    finally:
        _close(held)

    assert f"127.0.0.1:{port}" in refused.value.problem
    assert "`api.port`" in refused.value.remedy


async def test_a_port_in_use_is_known_before_the_node_does_anything(tmp_path: Path) -> None:
    held = await listen("127.0.0.1", 0)
    server = ApiServer(SmallNode(), config(tmp_path, port=port_of(held)))
    try:
        with pytest.raises(StartRefused, match="is in use"):
            await server.bind()
    finally:
        _close(held)


async def test_the_name_localhost_is_listened_on_at_each_of_its_addresses() -> None:
    sockets = await listen("127.0.0.1", 0)
    port = port_of(sockets)
    _close(sockets)

    named = await listen("localhost", port)
    addresses = {listener.getsockname()[:2] for listener in named}
    _close(named)

    assert ("127.0.0.1", port) in addresses


async def test_a_freed_port_can_be_taken_again_at_once() -> None:
    sockets = await listen("127.0.0.1", 0)
    port = port_of(sockets)
    _close(sockets)

    again = await listen("127.0.0.1", port)
    taken = port_of(again)
    _close(again)

    assert taken == port


async def test_an_address_of_another_machine_is_refused_with_the_remedy() -> None:
    with pytest.raises(StartRefused, match=r"api\.host"):
        await listen("192.0.2.1", 0)


async def test_a_bound_server_that_never_started_gives_its_port_back(tmp_path: Path) -> None:
    server = ApiServer(SmallNode(), config(tmp_path))
    await server.bind()
    port = server.port

    await server.stop()

    again = await listen("127.0.0.1", port)
    _close(again)


def test_a_port_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"api\.port"):
        config(tmp_path, port=70_000)
