"""What every test gets: the loop that its marks ask for, and an error where the engine blocks a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
from blockbuster import BlockBuster

import crewlet

# Before anything imports the suites: a broken promise then says what was found.
pytest.register_assert_rewrite("crewlet.testing.contracts")

from crewlet.testing import VirtualTimeLoop  # noqa: E402 - see above


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
