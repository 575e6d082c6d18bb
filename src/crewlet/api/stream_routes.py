"""The live stream: every event as it happens, over a WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from fastapi import APIRouter, WebSocket
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

from crewlet.api.admission import STREAM_PATH
from crewlet.api.depends import NEEDS_TOKEN, StreamHub
from crewlet.api.hub import Hub, StreamFull
from crewlet.api.outbox import Outbox
from crewlet.api.refusals import DRAINING, Refusal, Refused, unanswered, unavailable
from crewlet.base.errors import Unavailable

__all__ = ["router"]

_GOING_AWAY = 1001

router = APIRouter(tags=["events"])


@router.get(STREAM_PATH, status_code=426, dependencies=[NEEDS_TOKEN])
async def upgrade_required() -> None:
    """A WebSocket: this answers whoever asks without the upgrade."""
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    raise Refused(426, "upgrade_required", "this is a WebSocket: ask for the upgrade", headers=headers)


@router.websocket(STREAM_PATH)
async def stream(websocket: WebSocket, hub: StreamHub) -> None:
    """Frames until either side leaves. Accepted once the feed runs, so that nothing after the handshake is missed."""
    if hub.closing:
        await _deny(websocket, DRAINING)
        return
    try:
        with hub.watching() as outbox:
            await hub.fed()
            await websocket.accept()
            await _serve(websocket, hub, outbox)
    except StreamFull as error:
        await _deny(websocket, unavailable(str(error), code="too_many_sockets"))
    except Unavailable as error:
        await _deny(websocket, unanswered(error, is_write=False))


async def _serve(websocket: WebSocket, hub: Hub, outbox: Outbox) -> None:
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(_listen(websocket, hub, outbox))
        await _send_all(websocket, hub, outbox)
        listening.cancel()


async def _send_all(websocket: WebSocket, hub: Hub, outbox: Outbox) -> None:
    try:
        await websocket.send_text(hub.hello())
        while (taken := await outbox.take()) is not None:
            lost, frame = taken
            if lost:
                await websocket.send_text(hub.reply("dropped", count=lost))
            await websocket.send_text(frame)
        await websocket.close(_GOING_AWAY, "the node stops")
    except (WebSocketDisconnect, RuntimeError):
        # The peer left meanwhile; the framework says so in either way, by how far the leaving had come.
        return


async def _listen(websocket: WebSocket, hub: Hub, outbox: Outbox) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            outbox.abandon()
            return
        outbox.put(_reply(hub, message.get("text") or message.get("bytes") or b""))


def _reply(hub: Hub, said: str | bytes) -> str:
    try:
        asked: Any = msgspec.json.decode(said)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        asked = None
    if isinstance(asked, dict) and asked.get("kind") == "ping":  # pyright: ignore[reportUnknownMemberType]
        return hub.reply("pong")
    return hub.reply("error", error="bad_request", message='this takes {"kind": "ping"} and nothing else')


async def _deny(websocket: WebSocket, refusal: Refusal) -> None:
    await websocket.send_denial_response(Response(refusal.body(), refusal.status, refusal.headers, "application/json"))
