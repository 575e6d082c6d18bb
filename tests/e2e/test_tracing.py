"""A message's whole way through the company is one trace: in its events, and at a collector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import running_engine
from tests.e2e.companies import ASK_CTO, company, role, scripted, write_script
from tests.unit.tracing.collector import running_collector

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

CALLER_TRACE, CALLER_SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
NOT_OF_A_MESSAGE = {"org_started", "org_stopped"}


async def asking_company(directory: Path) -> EngineFiles:
    write_script(directory, *ASK_CTO)
    return await write_engine_files(directory, company(role("ceo"), role("cto"), llm={"script": scripted()}))


async def sent_by_a_caller(files: EngineFiles) -> str:
    headers = {
        "Authorization": f"Bearer {files.token_file.read_text().strip()}",
        "traceparent": f"00-{CALLER_TRACE}-{CALLER_SPAN}-01",
    }
    async with httpx.AsyncClient(base_url=files.url, headers=headers, trust_env=False) as client:
        answer = await client.post("/seats/ceo/messages", json={"text": "What first?"})
    assert answer.json()["trace_id"] == CALLER_TRACE
    return str(answer.json()["id"])


@pytest.mark.spec("E-180", "E-181")
async def test_all_that_a_message_causes_is_part_of_its_callers_trace(tmp_path: Path) -> None:
    async with running_engine(await asking_company(tmp_path)) as engine:
        await engine.api.final_message(await sent_by_a_caller(engine.files))

        rows = (await engine.api.get("/events", limit="400"))["events"]

    caused = [row for row in rows if row["type"] not in NOT_OF_A_MESSAGE]
    assert {"inbound_delivery", "a2a_message_sent", "agent_turn_completed"} <= {row["type"] for row in caused}
    assert {row["trace_id"] for row in caused} == {CALLER_TRACE}
    arrived = next(row for row in caused if row["type"] == "inbound_delivery")
    assert arrived["parent_span_id"] == CALLER_SPAN


async def test_messages_of_one_callers_trace_stand_apart(tmp_path: Path) -> None:
    async with running_engine(await asking_company(tmp_path)) as engine:
        sent = [await sent_by_a_caller(engine.files) for _ in range(2)]
        stand = [await engine.api.final_message(message) for message in sent]

    turns = [{turn["turn_id"] for turn in message["turns"]} for message in stand]
    assert [len(each) for each in turns] == [3, 3]
    assert turns[0].isdisjoint(turns[1])
    assert [len(message["asks"]) for message in stand] == [1, 1]


@pytest.mark.spec("E-182", "E-185")
async def test_a_collector_receives_the_tree_of_spans_that_the_events_name(tmp_path: Path) -> None:
    with running_collector() as collector:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        async with running_engine(await asking_company(tmp_path), environment=endpoint) as engine:
            await engine.api.final_message(await sent_by_a_caller(engine.files))
            rows: list[dict[str, Any]] = (await engine.api.get("/events", limit="400"))["events"]
            assert await engine.drained() == 0

    spans = {span.span_id.hex(): span for span in collector.spans}
    above = {span_id: span.parent_span_id.hex() for span_id, span in spans.items()}
    (root,) = [span_id for span_id, parent in above.items() if parent not in spans]
    assert (spans[root].name, above[root]) == ("webhook.receive", CALLER_SPAN)
    assert {span.trace_id.hex() for span in spans.values()} == {CALLER_TRACE}
    assert {span.name for span in spans.values()} == {
        "webhook.receive",
        "inbox.wake",
        "agent.turn",
        "agent.turn.execute",
        "agent.turn.review",
        "llm.round",
        "tool.call",
    }
    turns = [row for row in rows if row["type"].startswith(("agent_turn_", "agent_phase_"))]
    assert {spans[row["span_id"]].name for row in turns} == {"agent.turn", "agent.turn.execute", "agent.turn.review"}
    assert all(above[row["span_id"]] == row["parent_span_id"] for row in turns)
    wakers = {spans[above[span_id]].name for span_id, span in spans.items() if span.name == "agent.turn"}
    assert wakers == {"inbox.wake"}
