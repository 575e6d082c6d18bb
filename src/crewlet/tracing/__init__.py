"""Spans under the ids that events carry, the trace that code runs under, and the export of both."""

from crewlet.tracing.current import trace_of, under
from crewlet.tracing.otlp_export import OtlpExport, open_export
from crewlet.tracing.spans import Attribute, Span, SpanRecord, SpanSink, Tracer
from crewlet.tracing.traceparent import parse_traceparent

__all__ = [
    "Attribute",
    "OtlpExport",
    "Span",
    "SpanRecord",
    "SpanSink",
    "Tracer",
    "open_export",
    "parse_traceparent",
    "trace_of",
    "under",
]
