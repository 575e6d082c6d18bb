"""What a collector receives, and that nobody's work waits for one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from crewlet.base import limits
from crewlet.base.trace import Trace
from crewlet.tracing import SpanRecord, open_export
from tests.unit.tracing.collector import Collector, running_collector

pytestmark = pytest.mark.slow

ROOT = Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
CHILD = Trace(ROOT.trace_id, "00f067aa0ba902b7", ROOT.span_id)
START = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with running_collector() as collector:
        monkeypatch.setenv(ENDPOINT, collector.url)
        yield collector


def span(trace: Trace, name: str = "work", error: str = "", **attributes: str | int) -> SpanRecord:
    ended = START + timedelta(microseconds=7)
    return SpanRecord(name=name, trace=trace, started_at=START, ended_at=ended, attributes=attributes, error=error)


async def exported(collector: Collector, *spans: SpanRecord) -> list[Any]:
    export = open_export({ENDPOINT: collector.url}, node="node-7")
    assert export is not None
    for each in spans:
        export.ended(each)
    await export.close()
    return collector.spans


@pytest.mark.spec("E-185")
async def test_a_collector_receives_the_very_ids_that_the_events_carry(collector: Collector) -> None:
    root, child = await exported(collector, span(ROOT), span(CHILD))

    assert (root.trace_id.hex(), root.span_id.hex(), root.parent_span_id) == (ROOT.trace_id, ROOT.span_id, b"")
    assert child.trace_id.hex() == CHILD.trace_id
    assert (child.span_id.hex(), child.parent_span_id.hex()) == (CHILD.span_id, CHILD.parent_span_id)


async def test_names_times_attributes_and_failures_come_along(collector: Collector) -> None:
    (sent,) = await exported(collector, span(ROOT, "tool.call", "the call failed", seat="ceo", round=3))

    said = {each.key: each.value.string_value or each.value.int_value for each in sent.attributes}
    assert (sent.name, said) == ("tool.call", {"crewlet.seat": "ceo", "crewlet.round": 3})
    assert sent.start_time_unix_nano == int(START.timestamp()) * 10**9 + 123_456_000
    assert sent.end_time_unix_nano - sent.start_time_unix_nano == 7_000
    assert (sent.status.code, sent.status.message) == (2, "the call failed")


async def test_the_sender_names_itself_and_its_node(collector: Collector) -> None:
    await exported(collector, span(ROOT))

    assert collector.resource()["service.name"] == "crewlet"
    assert collector.resource()["service.instance.id"] == "node-7"


async def test_a_name_that_the_operator_gave_is_kept(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our-agents")

    await exported(collector, span(ROOT))

    assert collector.resource()["service.name"] == "our-agents"


@pytest.mark.parametrize(
    "trace",
    [Trace("", ""), Trace("trace-1", "span-1"), Trace("0" * 32, "a" * 16), Trace("a" * 32, "b" * 16, "parent")],
)
async def test_a_span_whose_ids_are_none_is_left_out(collector: Collector, trace: Trace) -> None:
    sent = await exported(collector, span(trace), span(ROOT))

    assert [each.span_id.hex() for each in sent] == [ROOT.span_id]


async def test_a_collector_that_does_not_answer_holds_up_no_end(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRACE_FLUSH_TIMEOUT_S", 0.1)
    collector.answers.clear()

    async with asyncio.timeout(5):
        assert await exported(collector, span(ROOT)) == []


@pytest.mark.parametrize(
    "more",
    [{ENDPOINT: ""}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}],
)
def test_nothing_is_exported_unless_it_is_wanted(more: dict[str, str]) -> None:
    assert open_export({ENDPOINT: "http://127.0.0.1:1", **more}, node="n") is None


@pytest.mark.parametrize(
    ("more", "missing", "remedy"),
    [
        ({}, "opentelemetry.exporter.otlp.proto.http.trace_exporter", "crewlet[otlp]"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"),
    ],
)
def test_what_cannot_be_had_is_said_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, str], missing: str, remedy: str
) -> None:
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)

    with structlog.testing.capture_logs() as logs:
        export = open_export({ENDPOINT: "http://127.0.0.1:1", **more}, node="n")

    assert export is None
    assert [(line["event"], line["log_level"], remedy in line["remedy"]) for line in logs] == [
        ("trace_export_unavailable", "error", True)
    ]


def test_the_sdk_is_not_loaded_where_no_collector_is_named() -> None:
    program = (
        "import sys; from crewlet.tracing import open_export; open_export({}, node='n');"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)

    assert said.stdout == "[]\n"
