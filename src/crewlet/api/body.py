"""A request's body, read whole within a size and a time before anybody acts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from crewlet.api.admission import Head
from crewlet.api.refusals import BODY_LATE, Refusal, body_too_large

__all__ = ["Disconnected", "Message", "Receive", "read_body", "replay"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Disconnected(Exception):
    """The client left before its body had come."""


async def read_body(head: Head, receive: Receive, *, max_bytes: int, timeout_s: float) -> bytes | Refusal:
    """The whole body, or why it is not taken. Raises ``Disconnected``."""
    announced = head.one_of(b"content-length")
    if announced.isdigit() and int(announced) > max_bytes:
        return body_too_large(max_bytes)
    try:
        async with asyncio.timeout(timeout_s):
            return await _read(receive, max_bytes)
    except TimeoutError:
        return BODY_LATE


async def _read(receive: Receive, max_bytes: int) -> bytes | Refusal:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Disconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            return body_too_large(max_bytes)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives ``body`` once, then what the connection says."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
