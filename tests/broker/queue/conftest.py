from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest

from crewlet.backends.nats import EmbeddedBroker
from crewlet.testing.brokers import running_broker
from tests.broker.queue.rig import Company, Node


@pytest.fixture
async def broker() -> AsyncGenerator[EmbeddedBroker]:
    # What a power cut would lose is not under test here, and the disk is shared.
    async with running_broker(sync_interval_s=60.0) as broker:
        yield broker


@pytest.fixture
async def company(broker: EmbeddedBroker) -> AsyncGenerator[Company]:
    async with AsyncExitStack() as stack:
        yield Company(broker, stack)


@pytest.fixture
async def node(company: Company) -> Node:
    return await company.node()
