"""A model server on loopback that speaks OpenAI's and Anthropic's wire formats and answers what it is told to.

In a test: ``async with ModelServer() as server: server.will(Answer(text="hi"))``. For a whole engine, as a process that
answers from a script file (the scripted model's own format)::

    python -m crewlet.testing.model_servers --script rules.yaml [--port 8100]

It prints one line of JSON with its addresses, then serves until it is told to stop.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from crewlet.llm import ModelRequest, ScriptReader, load_script
from crewlet.testing import model_wire_anthropic, model_wire_openai
from crewlet.testing.model_http import Connection, HttpRequest, LoopbackServer
from crewlet.testing.model_replies import Answer, CallOut, Hang, HttpError, ServerReply, reply_that

__all__ = ["ModelServer", "scripted_replies"]

Replies = Callable[[ModelRequest], ServerReply]


@dataclass(frozen=True, slots=True)
class _Wire:
    """One wire format: how a request reads, and how a reply and an error are written."""

    request: Callable[[dict[str, Any]], ModelRequest]
    body: Callable[[Answer, str], str]
    events: Callable[[Answer, str], Iterator[str]]
    error: Callable[[HttpError], str]
    error_event: Callable[[HttpError], str]


def _openai_error_event(error: HttpError) -> str:
    return f"data: {model_wire_openai.error_body(error)}\n\n"


_WIRES = {
    "/v1/chat/completions": _Wire(
        model_wire_openai.chat_request,
        model_wire_openai.chat_body,
        model_wire_openai.chat_events,
        model_wire_openai.error_body,
        _openai_error_event,
    ),
    "/v1/responses": _Wire(
        model_wire_openai.responses_request,
        model_wire_openai.responses_body,
        model_wire_openai.responses_events,
        model_wire_openai.error_body,
        _openai_error_event,
    ),
    "/v1/messages": _Wire(
        model_wire_anthropic.messages_request,
        model_wire_anthropic.messages_body,
        model_wire_anthropic.messages_events,
        model_wire_anthropic.error_body,
        model_wire_anthropic.error_event,
    ),
}


class ModelServer:
    """Answers with what :meth:`will` queued, then with ``replies``; keeps each request in ``requests``."""

    def __init__(self, replies: Replies | None = None, *, paths: Iterable[str] = tuple(_WIRES)) -> None:
        self.requests: list[HttpRequest] = []
        self._replies = replies
        self._queued: deque[ServerReply] = deque()
        self._paths = frozenset(paths)
        self._http = LoopbackServer(self._respond)

    @property
    def anthropic_url(self) -> str:
        """The ``base_url`` for an ``anthropic`` entry."""
        return f"http://127.0.0.1:{self._http.port}"

    @property
    def openai_url(self) -> str:
        """The ``base_url`` for an ``openai`` or ``openai-compatible`` entry."""
        return f"{self.anthropic_url}/v1"

    def will(self, *replies: ServerReply) -> None:
        """Answer the next requests with these, in this order."""
        self._queued.extend(replies)

    async def start(self, port: int = 0) -> None:
        """Listen on loopback."""
        await self._http.start(port)

    async def aclose(self) -> None:
        """Stop, breaking what is open."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _respond(self, request: HttpRequest, connection: Connection) -> None:
        self.requests.append(request)
        wire = _WIRES.get(request.path) if request.path in self._paths else None
        if wire is None:
            await connection.send(404, '{"error": {"message": "no such path"}}', _JSON)
            return
        reply = self._next(wire, request)
        match reply:
            case Hang(reset=True):
                connection.reset()
            case Hang():
                await connection.hang()
            case HttpError(in_stream=True):
                await connection.open_stream(_EVENTS)
                await connection.send_piece(wire.error_event(reply))
                await connection.close_stream()
            case HttpError():
                body = wire.error(reply) if reply.body is None else reply.body
                await connection.send(reply.status, body, {**_JSON, **reply.headers})
            case Answer():
                await _send_answer(reply, wire, request, connection)

    def _next(self, wire: _Wire, request: HttpRequest) -> ServerReply:
        if self._queued:
            return self._queued.popleft()
        if self._replies is None:
            return HttpError(status=500, message="the test told no reply for this request")
        return self._replies(wire.request(request.body))


_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


async def _send_answer(answer: Answer, wire: _Wire, request: HttpRequest, connection: Connection) -> None:
    if answer.delay_ms:
        await connection.hang(answer.delay_ms / 1000)
    model = str(request.body.get("model", ""))
    if not request.body.get("stream") or answer.unstreamed:
        await connection.send(200, wire.body(answer, model), _JSON)
        return
    await connection.open_stream(_EVENTS)
    for event in wire.events(answer, model):
        await connection.send_piece(event)
    if answer.reset:
        connection.reset()
    else:
        await connection.close_stream()


def scripted_replies(script: Path) -> Replies:
    """Replies out of a script file. The seat and the phase are unknown here: rules go by text and offered tools."""
    reader = ScriptReader(load_script(script))

    def reply(request: ModelRequest) -> ServerReply:
        said = reader.answer(request)
        if said.fail is not None:
            return reply_that(said.fail.kind, said.fail.retry_after_s)
        calls = tuple(CallOut(call.name, json.dumps(call.arguments), call.id) for call in said.calls)
        usage = said.usage
        return Answer(
            text=said.text,
            calls=calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            delay_ms=said.delay_ms,
        )

    return reply


async def _serve(script: Path, port: int) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = ModelServer(scripted_replies(script))
    await server.start(port)
    with contextlib.closing(sys.stdout):
        sys.stdout.write(json.dumps({"openai": server.openai_url, "anthropic": server.anthropic_url}) + "\n")
        sys.stdout.flush()
        await stopped.wait()
    await server.aclose()


def main() -> None:
    """Serve a script until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="A model server on loopback that answers from a script.")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.script, arguments.port))


if __name__ == "__main__":
    main()
