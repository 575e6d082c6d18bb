"""One broker and one connection for each test that asks for them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.backends.nats import Connection, EmbeddedBroker, JetStream
from crewlet.testing.brokers import connected_wire, running_broker


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with running_broker() as broker:
        yield broker


@pytest.fixture
async def wire(broker: EmbeddedBroker) -> AsyncIterator[Connection]:
    async with connected_wire(broker) as wire:
        yield wire


@pytest.fixture
def jetstream(wire: Connection) -> JetStream:
    return JetStream(wire)
