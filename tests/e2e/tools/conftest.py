"""Hosts of real tool servers, closed after each test, and a look at the processes below this one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from crewlet.base.ids import Handle
from crewlet.tools import ToolHost, ToolServerSpec

CEO = Handle("ceo")
HERE = Path(__file__).parent
PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def odd(name: str = "odd", *args: str, **fields: object) -> ToolServerSpec:
    """A server whose tools misbehave on demand; starts in a few milliseconds."""
    given = {"shared": True, "startup_timeout_s": 20.0, "request_timeout_s": 20.0, **fields}
    return ToolServerSpec(name=name, command=sys.executable, args=(str(HERE / "odd_server.py"), *args), **given)  # type: ignore[arg-type]


_others: set[int] = set()
"""What stood before the test: brokers that the whole run of the tests shares."""


def below() -> set[int]:
    """The processes that stem from this one since the test began."""
    return {child.pid for child in psutil.Process().children(recursive=True)} - _others


@pytest.fixture(autouse=True)
def processes_of_this_test_alone() -> None:
    """Remember which processes are others'."""
    _others.clear()
    _others.update(below())


@pytest.fixture
async def host() -> AsyncIterator[ToolHost]:
    host = ToolHost(environment=PATH)
    yield host
    await host.close()
