"""What routes are handed: the node, who asks, the live stream's middle, and the note that a token is needed."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request, Security, WebSocket
from fastapi.security import HTTPBearer

from crewlet.api.hub import Hub
from crewlet.node.face import NodeFace

__all__ = ["NEEDS_TOKEN", "Face", "Principal", "StreamHub"]

NEEDS_TOKEN = Security(HTTPBearer(scheme_name="bearer", auto_error=False, description="A token of this node."))
"""Says so in OpenAPI alone; the gate is what checks it, on every route."""


async def _face(request: Request) -> NodeFace:
    return cast("NodeFace", request.app.state.face)


async def _principal(request: Request) -> str:
    return f"operator:{request.state.principal}"


async def _hub(websocket: WebSocket) -> Hub:
    return cast("Hub", websocket.app.state.hub)


Face = Annotated[NodeFace, Depends(_face)]
Principal = Annotated[str, Depends(_principal)]
StreamHub = Annotated[Hub, Depends(_hub)]
