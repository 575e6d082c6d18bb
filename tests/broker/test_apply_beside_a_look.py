"""A company is applied while its node looks at what the fleet runs: that look is no change, and refuses none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import ActiveConfig
from crewlet.testing.clusters import Cluster, running_cluster
from tests.broker.booted_nodes import BootedNodes, document

pytestmark = pytest.mark.slow
_DEADLINE_S = 20


@pytest.fixture
def broker() -> Iterator[Cluster]:
    with running_cluster(1) as broker:
        yield broker


@pytest.fixture
async def fleet(broker: Cluster, tmp_path: Path) -> AsyncGenerator[BootedNodes]:
    async with AsyncExitStack() as stack:
        yield BootedNodes(broker, tmp_path, stack)


async def test_an_apply_waits_for_a_look_and_is_not_refused(fleet: BootedNodes) -> None:
    north = await fleet.booted("north")
    await north.start_seats()
    asked, answered = asyncio.Event(), asyncio.Event()

    async def unanswered() -> ActiveConfig:
        asked.set()
        await answered.wait()
        raise Unavailable("the store does not answer")

    look = asyncio.ensure_future(north.company.follow(unanswered))
    await asyncio.wait_for(asked.wait(), _DEADLINE_S)
    applying = asyncio.ensure_future(north.company.apply(document("ceo", "cto", "dev"), by="test"))
    await asyncio.sleep(0)
    waits = not applying.done()
    answered.set()

    applied = await asyncio.wait_for(applying, _DEADLINE_S)
    with pytest.raises(Unavailable):
        await look
    assert (waits, applied.checked.change.added) == (True, ("dev",))
