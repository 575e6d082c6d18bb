"""What every test gets: the loop that its marks ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from crewlet.testing import VirtualTimeLoop


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A test marked ``virtual_time`` and its async fixtures share a loop whose time jumps; others get a real one."""
    if item.get_closest_marker("virtual_time") is not None:
        return {"virtual": VirtualTimeLoop}
    return {"real": asyncio.new_event_loop}
