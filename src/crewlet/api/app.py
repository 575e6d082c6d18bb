"""The routes put together, what the node's errors become, and the OpenAPI document. Loads the web framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

import crewlet
from crewlet.api.admission import WRITES
from crewlet.api.budget_routes import router as budget_routes
from crewlet.api.company_routes import router as company_routes
from crewlet.api.coordination_routes import router as coordination_routes
from crewlet.api.event_routes import router as event_routes
from crewlet.api.fleet_routes import router as fleet_routes
from crewlet.api.hub import Hub
from crewlet.api.message_routes import router as message_routes
from crewlet.api.models import RefusalEnvelope
from crewlet.api.node_routes import open_router as probe_routes
from crewlet.api.node_routes import router as node_routes
from crewlet.api.queue_routes import router as queue_routes
from crewlet.api.refusals import INTERNAL, Refusal, Refused, method_not_allowed, unanswered
from crewlet.api.seat_routes import router as seat_routes
from crewlet.api.stream_routes import router as stream_routes
from crewlet.api.turn_routes import router as turn_routes
from crewlet.base.errors import Unavailable
from crewlet.node.face import NodeFace

__all__ = ["build_app"]

_DESCRIPTION: Final = """
What an operator asks of one running Crewlet node.

Every route but `/health` and `/ready` needs a bearer token. A refusal is always
`{"error": code, "message": sentence, …}`; a 503 that waiting clears carries `Retry-After`, and a write whose outcome
nobody knows says `"outcome": "unknown"`.

`/ws/stream` is a WebSocket (token in the `Authorization` header or as `?token=`). It sends JSON text frames
`{"kind", "data", "ts"}`: `event` (every event as it is published, flat), `health` (every 5 seconds), `pong` (to
`{"kind": "ping"}`), `dropped` (`{"count"}`: frames that a slow reader lost), `draining`, and `closing` before it ends
with code 1001.
"""

_SENTENCES: Final[Mapping[str, str]] = {
    "extra_forbidden": "is not known here",
    "json_invalid": "is not valid JSON",
    "missing": "is required",
    "model_attributes_type": "must be a JSON object, sent as `Content-Type: application/json`",
    "string_pattern_mismatch": "must not be blank",
    "string_too_short": "must not be empty",
}


def build_app(face: NodeFace, hub: Hub) -> FastAPI:
    """The routes over ``face``; they rely on the gate in front of them and guard nothing themselves."""
    app = FastAPI(
        title="Crewlet operator API",
        version=crewlet.__version__,
        description=_DESCRIPTION,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={"4XX": {"model": RefusalEnvelope}, "5XX": {"model": RefusalEnvelope}},
    )
    app.state.face = face
    app.state.hub = hub
    for router in (
        probe_routes,
        node_routes,
        seat_routes,
        turn_routes,
        message_routes,
        event_routes,
        queue_routes,
        coordination_routes,
        budget_routes,
        company_routes,
        fleet_routes,
        stream_routes,
    ):
        app.include_router(router)
    _add_handlers(app)
    return app


def _add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(Unavailable, _unavailable)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_router)
    app.add_exception_handler(Exception, _broken)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _response(error.refusal)


async def _unavailable(request: Request, error: Exception) -> Response:
    assert isinstance(error, Unavailable)
    return _response(unanswered(error, is_write=request.method in WRITES))


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [{"path": _path(found["loc"]), "problem": _sentence(found)} for found in error.errors()]
    message = "; ".join(f"{problem['path']}: {problem['problem']}" for problem in problems)
    return _response(Refusal(400, "bad_request", message, {"problems": problems}))


async def _of_router(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:  # noqa: PLR2004 - as HTTP has it
        return _response(Refusal(404, "no_route", f"there is nothing at {request.url.path}"))
    if error.status_code == 405:  # noqa: PLR2004 - as HTTP has it
        return _response(method_not_allowed(request.method, (error.headers or {}).get("Allow", "")))
    return _response(Refusal(error.status_code, "bad_request", str(error.detail)))


async def _broken(_request: Request, _error: Exception) -> Response:
    # The framework raises it on after this answer, and the gate logs it.
    return _response(INTERNAL)


def _response(refusal: Refusal) -> Response:
    return Response(refusal.body(), refusal.status, refusal.headers, "application/json")


def _sentence(found: Mapping[str, Any]) -> str:
    """What is wrong, in our words where the framework's would not tell a person what to do."""
    said = _SENTENCES.get(str(found["type"]), str(found["msg"]))
    return said.replace("Input should be", "must be").replace("String should", "must")


def _path(location: tuple[Any, ...]) -> str:
    """Where in the request, as people write it: ``text``, ``limit``, ``type[2]``."""
    path = ""
    for part in location[1:] or location:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    return path
