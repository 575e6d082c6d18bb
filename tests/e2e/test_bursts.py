"""Bursts at a real engine on a real broker: what waits is one turn a conversation; and mail for want of a model."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream
from crewlet.base.clock import SystemClock
from crewlet.base.trace import fresh_trace
from crewlet.events import encode, new_event
from crewlet.events.types import RawWebhook
from crewlet.testing import SeededIds
from crewlet.testing.clusters import Cluster, running_cluster
from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.played_sources import board_change, chat_message
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Json = dict[str, Any]
PLAYED = (sys.executable, str(Path(__file__).with_name("played_engine.py")), "run")
SLOW_ECHO = {**ECHO, "delay_ms": 2000}
ACCEPTS: Json = {"when": {"phase": "execute"}, "say": "Seen"}


@pytest.fixture
def broker() -> Iterator[Cluster]:
    with running_cluster(1) as broker:
        yield broker


class Outside:
    """Sends what boards and chats send, and counts what it comes to."""

    def __init__(self, engine: Engine, api: JetStream) -> None:
        self.engine = engine
        self._api = api
        self._ids = SeededIds(11)

    async def sends(self, *deliveries: RawWebhook) -> None:
        for raw in deliveries:
            event = new_event(raw, trace=fresh_trace(self._ids), now=SystemClock().now(), ids=self._ids)
            await self._api.publish(topics.NOTIFICATIONS_INBOUND, encode(event), message_id=event.id)

    async def waiting(self) -> int:
        """How many messages wait at the ceo's inbox, or are being worked."""
        boxes = (await self.engine.api.get("/mailboxes", seat="ceo"))["mailboxes"]
        return sum(box["pending"] + box["held"] for box in boxes if box["topic"] == topics.agent_inbox("ceo"))

    async def all_worked(self, count: int) -> None:
        """Return once this many notifications were routed, and none waits."""

        async def are() -> bool:
            routed = await self.engine.api.events("external_notification", limit=100)
            return len(routed) == count and await self.waiting() == 0

        await wait_until(are, what=f"{count} notifications worked", timeout_s=60)

    async def is_running(self, message_id: str) -> None:
        """Return once a turn for the message runs."""

        async def is_so() -> bool:
            return any(turn["state"] == "running" for turn in (await self.engine.api.message(message_id))["turns"])

        await wait_until(is_so, what="the turn", timeout_s=20)

    async def turns(self) -> int:
        return len(await self.engine.api.events("agent_turn_completed", limit=100))

    async def merges(self) -> int:
        return len(await self.engine.api.events("notifications_coalesced", limit=100))


@asynccontextmanager
async def played(folder: Path, broker: Cluster, *replies: Json) -> AsyncGenerator[Outside]:
    write_script(folder, *replies)
    node = {
        "stream": {"type": "nats", "url": broker.url, "token": "${BROKER_TOKEN}"},
        "coordination": {"type": "embedded-kv"},
    }
    files = await write_engine_files(folder, company(role("ceo"), llm={"script": scripted()}), node=node)
    wire = await broker.connect("outside")
    try:
        async with running_engine(files, environment={"BROKER_TOKEN": broker.token}, command=PLAYED) as engine:
            yield Outside(engine, JetStream(wire))
    finally:
        await wire.close()


@pytest.mark.spec("E-107")
async def test_twenty_four_changes_of_four_issues_behind_a_running_turn_cost_eight_turns(
    tmp_path: Path, broker: Cluster
) -> None:
    """And four, as soon as the company takes a hundred at once: the running engine is told so."""
    async with played(tmp_path, broker, SLOW_ECHO, ACCEPTS) as outside:
        changes = [board_change(f"P-{n % 4}", "comment", to="ceo", by="ann", text=f"{n}") for n in range(24)]
        turns: list[int] = []
        for round_, cap in enumerate((20, 100), 1):
            document = company(role("ceo"), llm={"script": scripted()}, notification_coalesce_max_batch=cap)
            await outside.engine.api.post("/company", {"document": json.dumps(document)})
            before = await outside.turns()
            first = await outside.engine.api.send("ceo", "Hi")
            await outside.is_running(first)
            await outside.sends(*changes)
            await outside.all_worked(25 * round_)
            turns.append(await outside.turns() - before - 1)

        assert turns == [8, 4]
        assert await outside.merges() == 8


@pytest.mark.spec("E-108")
async def test_ten_messages_at_an_idle_seat_cost_two_turns_at_most(tmp_path: Path, broker: Cluster) -> None:
    async with played(tmp_path, broker, {**ACCEPTS, "delay_ms": 2000}) as outside:
        said = [chat_message("C9", f"10{n}", to="ceo", by="ann", text=f"{n}", thread="100") for n in range(10)]

        await outside.sends(*said)
        await outside.all_worked(10)

        assert await outside.turns() <= 2


async def test_a_company_without_a_model_answers_once_it_has_one(tmp_path: Path) -> None:
    files = await write_engine_files(tmp_path, company({"name": "CEO", "handle": "ceo"}, llm={}))
    write_script(tmp_path, ECHO)
    async with running_engine(files) as engine:
        sent = await engine.api.send("ceo", "Hi")
        await engine.says("seat_held_without_model")
        waits = await engine.api.message(sent)
        document = company(role("ceo"), llm={"script": scripted()})
        await engine.api.post("/company", {"document": json.dumps(document)})

        assert not waits["turns"]
        assert (await engine.api.final_message(sent))["answer"] == "You said: Hi"
