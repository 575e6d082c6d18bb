"""Nodes of one company on one broker, booted in this process; they hold no seat until they are told to."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path

from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.config import Variables, load_company, load_node_file
from crewlet.node import CompanySource, Node, NodeSettings
from crewlet.testing.clusters import Cluster
from tests.e2e.companies import ECHO, company, role, scripted, write_script

__all__ = ["BootedNodes", "document"]


def document(*handles: str) -> str:
    """A company of these agents."""
    return json.dumps(company(*map(role, handles), llm={"script": scripted()}))


class BootedNodes:
    """Each starts with a company of the ceo and the cto; ``stack`` drains them."""

    def __init__(self, broker: Cluster, folder: Path, stack: AsyncExitStack) -> None:
        self._broker = broker
        self._folder = folder
        self._stack = stack

    async def booted(self, name: str) -> Node:
        """One more node."""
        folder = self._folder / name
        write_script(folder, ECHO)
        (folder / "company.yaml").write_text(document("ceo", "cto"))
        stream = {"type": "nats", "url": self._broker.url, "token": self._broker.token}
        node = {"node": {"id": name}, "coordination": {"type": "embedded-kv"}, "stream": stream, "api": {"port": 0}}
        (folder / "crewlet.yaml").write_text(json.dumps(node))
        loaded = load_company(folder / "company.yaml")
        settings = NodeSettings(
            config=load_node_file(folder / "crewlet.yaml", {}).config,
            company=CompanySource(loaded.organization, folder, Variables({}), loaded.text),
            environment={},
            clock=SystemClock(),
            ids=RandomIds(),
        )
        booted = await Node.boot(settings)
        self._stack.push_async_callback(booted.drain)
        return booted
