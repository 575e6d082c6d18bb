"""An engine on a broker of somebody else's: it works as on its own, and everything it publishes says who did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.events import decode
from crewlet.testing.clusters import Cluster, running_cluster
from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import running_engine
from tests.e2e.companies import ASK_CTO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]


@pytest.fixture
def broker() -> Iterator[Cluster]:
    with running_cluster(1) as broker:
        yield broker


@pytest.mark.spec("E-008", "E-151")
async def test_a_message_is_answered_there_and_every_event_on_its_way_names_the_engine(
    tmp_path: Path, broker: Cluster
) -> None:
    write_script(tmp_path, *ASK_CTO)
    document = company(role("ceo"), role("cto"), llm={"script": scripted()})
    node = {
        "node": {"id": "north"},
        "stream": {"type": "nats", "url": broker.url, "token": "${BROKER_TOKEN}"},
        "coordination": {"type": "embedded-kv"},
    }
    files = await write_engine_files(tmp_path, document, node=node)
    eye = await broker.connect("eye")
    published: list[tuple[str, bytes]] = []
    await eye.subscribe("crewlet.>", lambda message: published.append((message.subject, message.payload)))

    async with running_engine(files, environment={"BROKER_TOKEN": broker.token}) as engine:
        answered = await engine.api.final_message(await engine.api.send("ceo", "What first?"))
        await engine.drained()
    await eye.close()

    assert answered["state"] == "answered"
    journals = {topics.journal("ceo"), topics.journal("cto")}
    events = {topic: decode(payload) for topic, payload in published if topic not in journals}
    assert {event.node for event in events.values()} == {"north"}
    assert {topic.split(".")[1] for topic in events} == {"notifications", "agent", "events"}
