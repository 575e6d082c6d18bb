"""The export of spans over OTLP, where the environment names a collector; the SDK is loaded then and not before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import structlog

from crewlet.base import limits
from crewlet.tracing.spans import SpanRecord, SpanSink

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    from opentelemetry.trace import SpanContext

__all__ = ["OtlpExport", "open_export"]

_log = structlog.get_logger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN: Final = "http/protobuf"
_NAMELESS: Final = "unknown_service"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HEX: Final = frozenset("0123456789abcdef")
_TRACE_ID_DIGITS: Final = 32
_SPAN_ID_DIGITS: Final = 16


def open_export(environment: Mapping[str, str], *, node: str) -> OtlpExport | None:
    """The export that the environment asks for, or ``None`` where it asks for none or it cannot be had.

    Why it cannot is logged with the remedy: nobody's work waits for a trace. Takes a moment to load; call it in a
    thread. The SDK reads headers, certificates and the rest of its own variables from the process's environment.
    """
    if not any(environment.get(name) for name in _ENDPOINTS) or _is_off(environment):
        return None
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), _SPOKEN)
    if protocol != _SPOKEN:
        remedy = f"set {_PROTOCOLS[-1]}={_SPOKEN} and name the collector's port for HTTP (4318)"
        _log.error("trace_export_unavailable", reason=f"OTLP over {protocol} is not spoken here", remedy=remedy)
        return None
    try:
        return _loaded(node)
    except ImportError as missing:
        remedy = "install it with the extra: crewlet[otlp]"
        _log.error("trace_export_unavailable", reason=f"the exporter is not installed ({missing.name})", remedy=remedy)
        return None


def _is_off(environment: Mapping[str, str]) -> bool:
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return disabled or environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"


def _loaded(node: str) -> OtlpExport:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    import crewlet

    resource = Resource.create({"service.version": crewlet.__version__, "service.instance.id": node})
    # A name that the operator gave in the SDK's own variables is theirs to keep.
    if str(resource.attributes.get("service.name", "")).startswith(_NAMELESS):
        resource = resource.merge(Resource({"service.name": "crewlet"}))
    return OtlpExport(BatchSpanProcessor(OTLPSpanExporter()), resource)


class OtlpExport(SpanSink):
    """Hands finished spans, under their own ids, to a processor of the SDK, which batches and sends in its thread."""

    def __init__(self, processor: SpanProcessor, resource: Resource) -> None:
        self._processor = processor
        self._resource = resource

    def ended(self, span: SpanRecord) -> None:
        """Queue it; what no longer fits the SDK's queue is lost, and so is a span whose ids are none of W3C's."""
        if not _is_valid(span):
            return
        self._processor.on_end(self._readable(span))

    async def close(self) -> None:
        """Send what is queued, for ``limits.TRACE_FLUSH_TIMEOUT_S`` at most."""
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def shut_down() -> None:
            self._processor.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        # A daemon of our own: a pool's thread would hold up the process until a collector that is away timed out.
        threading.Thread(target=shut_down, name="trace_flush", daemon=True).start()
        try:
            async with asyncio.timeout(limits.TRACE_FLUSH_TIMEOUT_S):
                await done.wait()
        except TimeoutError:
            _log.warning("trace_flush_late", after_s=limits.TRACE_FLUSH_TIMEOUT_S)

    def _readable(self, span: SpanRecord) -> ReadableSpan:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import Status, StatusCode

        trace = span.trace
        return ReadableSpan(
            name=span.name,
            context=_context(trace.trace_id, trace.span_id),
            parent=_context(trace.trace_id, trace.parent_span_id) if trace.parent_span_id else None,
            resource=self._resource,
            attributes={f"crewlet.{name}": value for name, value in span.attributes.items()},
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=_ns(span.started_at),
            end_time=_ns(span.ended_at),
            instrumentation_scope=InstrumentationScope("crewlet"),
        )


def _context(trace_id: str, span_id: str) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _is_valid(span: SpanRecord) -> bool:
    trace = span.trace
    above = not trace.parent_span_id or _is_id(trace.parent_span_id, _SPAN_ID_DIGITS)
    return _is_id(trace.trace_id, _TRACE_ID_DIGITS) and _is_id(trace.span_id, _SPAN_ID_DIGITS) and above


def _is_id(text: str, digits: int) -> bool:
    return len(text) == digits and set(text) <= _HEX and set(text) != {"0"}


def _ns(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
