"""A collector of spans for tests: it takes OTLP over HTTP and keeps what it was sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(ThreadingHTTPServer):
    """Takes what is sent over OTLP; while ``answers`` is clear it keeps them waiting."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.answers = threading.Event()
        self.answers.set()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    def resource(self) -> Mapping[str, str]:
        attributes = self.requests[0].resource_spans[0].resource.attributes
        return {each.key: each.value.string_value for each in attributes}


class _Handler(BaseHTTPRequestHandler):
    server: Collector  # pyright: ignore[reportIncompatibleVariableOverride] - it serves no other

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.answers.wait(20)
        self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's word
        pass


@contextmanager
def running_collector() -> Generator[Collector]:
    """A collector in a thread of its own, for as long as the block lasts."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()
