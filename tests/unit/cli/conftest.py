"""Runs commands as `crewlet` would, in a folder of their own, without what the developer's environment holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from crewlet.api import ApiServer
from tests.unit.api.small_node import TOKEN, SmallNode, config, serving


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREWLET_API_TOKEN", raising=False)
    monkeypatch.delenv("CREWLET_TRACEBACK", raising=False)
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> SmallNode:
    """What the API that a command talks to stands in front of; the command has its token."""
    monkeypatch.setenv("CREWLET_API_TOKEN", TOKEN)
    return SmallNode()


@pytest.fixture
async def server(node: SmallNode, tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with serving(node, config(tmp_path)) as server:
        yield server
