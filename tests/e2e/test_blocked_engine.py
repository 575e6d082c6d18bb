"""An engine whose event loop is blocked ends after the lease in force, on a node that is alone as in a fleet."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream, connect, open_buckets
from crewlet.backends.nats.jetstream_types import ns
from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.coordination import leases_slot
from crewlet.notify import inbound_subscription
from crewlet.seats import EXIT_WEDGED
from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine
from tests.broker.test_external_broker import TOKEN, external_broker
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Json = dict[str, Any]
TTL_S = 6
LONGER_S = 60
BLOCKS_WHEN_WRITTEN_TO = """
import sys, time
from crewlet.cli import main
from crewlet.node import Node

async def send_message(self, *_, **__):
    time.sleep(120)

Node.send_message = send_message
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    async with external_broker(folder) as url:
        yield url


@asynccontextmanager
async def engine_that_blocks(folder: Path, node: Json) -> AsyncGenerator[Engine]:
    write_script(folder, ECHO)
    files = await write_engine_files(folder, company(role("ceo"), llm={"script": scripted()}), node=node)
    engine = Engine(files, command=(sys.executable, "-c", BLOCKS_WHEN_WRITTEN_TO, "run"))
    try:
        await engine.start()
        await engine.ready()
        yield engine
    finally:
        await engine.close()


async def blocked(engine: Engine) -> tuple[int, float]:
    """How it ended and after how many seconds, once it was written to."""
    clock = SystemClock()
    begun_s = clock.elapsed_s()
    with pytest.raises(httpx.TransportError):
        await engine.api.send("ceo", "Hi")
    return await engine.ended(timeout_s=30), clock.elapsed_s() - begun_s


@pytest.mark.spec("S-165", "S-171")
async def test_a_blocked_engine_ends_after_the_lease_in_force_alone_as_in_a_fleet_that_chose_its_length(
    broker: str, tmp_path: Path
) -> None:
    """The second has ten times that in its own file, and the bucket that its fleet made says otherwise."""
    async with AsyncExitStack() as stack:
        wire = await connect(broker, token=TOKEN, name="fleet")
        stack.push_async_callback(wire.close)
        api = JetStream(wire)
        await open_buckets(api, [leases_slot(TTL_S)], storage="file", ids=RandomIds())
        local: Json = {"coordination": {"type": "local", "lease_ttl_seconds": TTL_S}}
        shared: Json = {
            "stream": {"type": "nats", "url": broker, "token": TOKEN},
            "coordination": {"type": "embedded-kv", "lease_ttl_seconds": LONGER_S},
        }
        alone = await stack.enter_async_context(engine_that_blocks(tmp_path / "alone", local))
        of_a_fleet = await stack.enter_async_context(engine_that_blocks(tmp_path / "fleet", shared))
        inbound = inbound_subscription()
        durable = topics.durable_name(inbound.topic, inbound.group)
        work_queue = await api.consumer_info(topics.STREAM_NOTIFICATIONS, durable)

        ends = await asyncio.gather(blocked(alone), blocked(of_a_fleet))

        assert [code for code, _ in ends] == [EXIT_WEDGED] * 2
        assert all(TTL_S / 2 < took_s < 2 * TTL_S for _, took_s in ends)
        assert f"a lease lasts {TTL_S} s" in of_a_fleet.err
        assert work_queue is not None
        assert work_queue.config.ack_wait == ns(TTL_S)
