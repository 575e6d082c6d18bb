"""An operator finds what was given up, and sends it on its way again, with the commands alone."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crewlet import topics
from crewlet.backends.nats import Connection, JetStream, connect
from crewlet.backends.nats.queue_dead_letters import GROUP_HEADER, REASON_HEADER, TOPIC_HEADER
from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.base.trace import fresh_trace
from crewlet.events import encode, new_event
from crewlet.events.types import RawWebhook
from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine, run_command, running_engine
from crewlet.testing.waiting import wait_until
from tests.broker.test_external_broker import TOKEN, external_broker
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

Json = dict[str, Any]


@asynccontextmanager
async def engine_beside_us(directory: Path) -> AsyncGenerator[tuple[Engine, Connection]]:
    """An engine on a broker that this test can write to as well."""
    server, home = directory / "server", directory / "home"
    server.mkdir()
    write_script(home, ECHO)
    async with external_broker(server) as url:
        node = {"stream": {"type": "nats", "url": url, "token": TOKEN}, "coordination": {"type": "embedded-kv"}}
        files = await write_engine_files(home, company(role("ceo"), llm={"script": scripted()}), node=node)
        async with running_engine(files) as engine:
            wire = await connect(url, token=TOKEN)
            try:
                yield engine, wire
            finally:
                await wire.close()


async def listed(engine: Engine) -> list[Json]:
    said = await run_command("dlq", "list", "--json", cwd=engine.files.directory)
    assert said.code == 0, said.err
    return json.loads(said.out)["letters"]


async def is_listed(engine: Engine) -> bool:
    return bool(await listed(engine))


async def has_ended_a_turn(engine: Engine) -> bool:
    return bool(await engine.api.events("agent_turn_completed"))


async def test_poison_is_found_shown_and_dropped(tmp_path: Path) -> None:
    async with engine_beside_us(tmp_path) as (engine, wire):
        home = engine.files.directory
        await JetStream(wire).publish(topics.agent_inbox("ceo"), b"no event at all")
        await wait_until(lambda: is_listed(engine), what="the dead letter", timeout_s=20)

        (letter,) = await listed(engine)
        shown = await run_command("dlq", "show", letter["id"], cwd=home)
        dropped = await run_command("dlq", "drop", letter["id"], cwd=home)

        assert (letter["seat"], letter["event_id"], letter["deliveries"]) == ("ceo", "", 1)
        assert "no event at all" in shown.out
        assert (dropped.code, await listed(engine)) == (0, [])


async def test_what_was_given_up_is_worked_once_it_is_sent_again(tmp_path: Path) -> None:
    ids = RandomIds()
    event = new_event(
        RawWebhook(integration="operator", recipient="ceo", sender="operator:x", body="Once more"),
        trace=fresh_trace(ids),
        now=SystemClock().now(),
        ids=ids,
    )
    topic, group = topics.NOTIFICATIONS_INBOUND, topics.NOTIFY_INBOUND_GROUP
    note = {TOPIC_HEADER: topic, GROUP_HEADER: group, REASON_HEADER: "failed on delivery 25 of 25"}
    async with engine_beside_us(tmp_path) as (engine, wire):
        await JetStream(wire).publish(topics.dead_letter(topic, group), encode(event), headers=note)

        (letter,) = await listed(engine)
        redriven = await run_command("dlq", "redrive", letter["id"], cwd=engine.files.directory)
        await wait_until(lambda: has_ended_a_turn(engine), what="the turn", timeout_s=20)

        (turn,) = await engine.api.events("agent_turn_completed")
        assert (letter["event_id"], redriven.code) == (event.id, 0)
        assert (turn["artifact"], turn["trace_id"]) == ("You said: Once more", event.trace_id)
        assert await listed(engine) == []


async def test_mailboxes_show_what_waits_and_who_works_it(tmp_path: Path) -> None:
    async with engine_beside_us(tmp_path) as (engine, wire):
        await JetStream(wire).publish(topics.agent_control("ceo"), b"{}")

        said = await run_command("mailboxes", "--json", cwd=engine.files.directory)

        boxes = {box["topic"]: box for box in json.loads(said.out)["mailboxes"]}
        assert boxes.keys() == {
            topics.NOTIFICATIONS_INBOUND,
            topics.agent_inbox("ceo"),
            topics.agent_control("ceo"),
            topics.agent_reflect("ceo"),
        }
        inbox, control = boxes[topics.agent_inbox("ceo")], boxes[topics.agent_control("ceo")]
        assert (inbox["attached"], inbox["pending"], inbox["oldest"]) == ("here", 0, None)
        assert (control["attached"], control["pending"], control["seat"]) == ("nobody", 1, "ceo")
        assert control["oldest"] is not None
