"""What every test gets: the loop that its marks ask for, and an error where the engine blocks a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest
from blockbuster import BlockBuster
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs] - typed, and does not say so
from xdist.scheduler.loadscope import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs] - as above

import crewlet

# Before anything imports the suites: a broken promise then says what was found.
pytest.register_assert_rewrite("crewlet.testing.contracts")

from crewlet.testing import VirtualTimeLoop  # noqa: E402 - see above

_TOGETHER: Final = ("_three_members.py", "tests/broker/records/", "tests/bench_smoke/", "tests/tidy/")
"""Tests that share what is dear to start or to read: one of several processes alone runs these."""


class _OneByOne(LoadScopeScheduling):
    """Hands each test to whichever process is free, except for those that stay together."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((shared for shared in _TOGETHER if shared in file), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """How tests are handed out with ``-n``."""
    return _OneByOne(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests first where several processes run them, so that none is left with one at the end."""
    if hasattr(config, "workerinput"):
        items.sort(key=_weight)


def _weight(item: pytest.Item) -> int:
    if item.get_closest_marker("slow") is None:
        return 2
    return 0 if "e2e" in item.path.parts else 1


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A test marked ``virtual_time`` and its async fixtures share a loop whose time jumps; others get a real one."""
    if item.get_closest_marker("virtual_time") is not None:
        return {"virtual": VirtualTimeLoop}
    return {"real": asyncio.new_event_loop}


@pytest.fixture(scope="session", autouse=True)
def blocking_calls_fail() -> Iterator[None]:
    """Raise where the engine's code would stop a running loop: sleeping, waiting on a socket, a database, a person.

    Files are exempt, and locks: a queue shared with a thread is locked for microseconds, and only sometimes.
    """
    guard = BlockBuster(crewlet)
    exempt = [name for name in guard.functions if name.startswith(("io.", "os.", "threading."))]
    for name in exempt:
        del guard.functions[name]
    guard.activate()
    yield
    guard.deactivate()
