"""Every route of the application, as the application itself lists them: a new one is covered the day it is added."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRouter
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from crewlet.api.app import build_app
from crewlet.api.config import ApiLimits
from crewlet.api.hub import Hub
from crewlet.base.clock import SystemClock
from tests.unit.api.small_node import TOKEN, SmallNode, asking, config, serving

pytestmark = pytest.mark.slow

_OPEN = {"/health", "/ready"}
_SOCKET = "SOCKET"


class Known(NamedTuple):
    """One verb of one route, its parameters filled in."""

    method: str
    path: str


def _listed(routes: Sequence[BaseRoute]) -> Iterator[Known]:
    for route in routes:
        included = getattr(route, "original_router", None)
        if isinstance(included, APIRouter):
            yield from _listed(included.routes)
        elif isinstance(route, Route):
            yield from (Known(method, _filled(route.path)) for method in sorted(route.methods or ()))
        elif isinstance(route, WebSocketRoute):
            yield Known(_SOCKET, _filled(route.path))
        else:
            assert isinstance(route, Mount), f"{route!r} hides its routes from this test"
            yield from (Known(known.method, route.path + known.path) for known in _listed(route.routes))


def _filled(path: str) -> str:
    return re.sub(r"{[^}]*}", "x", path)


def _application() -> FastAPI:
    node = SmallNode()
    return build_app(node, Hub(node, SystemClock(), ApiLimits()))


_ALL = list(_listed(_application().routes))
_GUARDED = [known for known in _ALL if known.path not in _OPEN]


@pytest.mark.spec("C-184")
def test_the_routes_are_those_that_are_meant() -> None:
    assert {known for known in _ALL if known.method != "HEAD"} == {
        Known("GET", "/health"),
        Known("GET", "/ready"),
        Known("GET", "/seats"),
        Known("POST", "/seats/x/messages"),
        Known("POST", "/seats/x/pause"),
        Known("POST", "/turns/x/steer"),
        Known("POST", "/seats/x/resume"),
        Known("GET", "/messages/x"),
        Known("GET", "/events"),
        Known("GET", "/events/x"),
        Known("GET", "/turns/x"),
        Known("GET", "/mailboxes"),
        Known("GET", "/query/fleet"),
        Known("GET", "/company"),
        Known("POST", "/company"),
        Known("POST", "/company/check"),
        Known("GET", "/company/tools"),
        Known("GET", "/budgets"),
        Known("GET", "/coordination"),
        Known("GET", "/coordination/x"),
        Known("GET", "/coordination/x/x"),
        Known("GET", "/dead-letters"),
        Known("GET", "/dead-letters/x"),
        Known("POST", "/dead-letters/x/redrive"),
        Known("DELETE", "/dead-letters/x"),
        Known("GET", "/ws/stream"),
        Known(_SOCKET, "/ws/stream"),
        Known("GET", "/openapi.json"),
    }


@pytest.mark.parametrize("shown", ["", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN} "[:-2]])
async def test_no_guarded_route_answers_without_its_token(tmp_path: Path, shown: str) -> None:
    headers = {"Authorization": shown} if shown else {"X-Nothing": "at all"}
    seen: dict[Known, tuple[int, str, bool]] = {}
    async with serving(SmallNode(), config(tmp_path)) as server:
        async with asking(server, **headers) as client:
            for known in _GUARDED:
                if known.method != _SOCKET:
                    answer = await client.request(known.method, known.path)
                    code = "unauthorized" if known.method == "HEAD" else answer.json()["error"]
                    seen[known] = (answer.status_code, code, "www-authenticate" in answer.headers)
        for known in _GUARDED:
            if known.method == _SOCKET:
                with pytest.raises(InvalidStatus) as refused:
                    await connect(f"ws://127.0.0.1:{server.port}{known.path}", additional_headers=headers, proxy=None)
                response = refused.value.response
                seen[known] = (
                    response.status_code,
                    "unauthorized" if b"unauthorized" in (response.body or b"") else "",
                    "www-authenticate" in response.headers,
                )

    assert seen == dict.fromkeys(_GUARDED, (401, "unauthorized", True))


async def test_every_guarded_route_answers_its_token(tmp_path: Path) -> None:
    async with serving(SmallNode(), config(tmp_path)) as server, asking(server) as client:
        statuses = {
            known: (await client.request(known.method, known.path)).status_code
            for known in _GUARDED
            if known.method != _SOCKET
        }

    assert not {known for known, status in statuses.items() if status in (401, 403, 405, 500)}


async def test_anonymous_reads_open_reads_and_no_write(tmp_path: Path) -> None:
    settings = config(tmp_path, allow_anonymous_read=True)
    async with serving(SmallNode(), settings) as server, asking(server, X="y") as client:
        open_to_all = {
            known: (await client.request(known.method, known.path)).status_code != 401
            for known in _GUARDED
            if known.method != _SOCKET
        }

    assert open_to_all == {known: known.method in ("GET", "HEAD") for known in open_to_all}


@pytest.mark.parametrize("path", sorted(_OPEN))
async def test_probes_are_answered_with_a_wrong_token_too(tmp_path: Path, path: str) -> None:
    async with serving(SmallNode(), config(tmp_path)) as server, asking(server, Authorization="Bearer no") as client:
        answer = await client.get(path)

    assert answer.status_code == 200


@pytest.mark.parametrize(
    "known", [Known("GET", "/health"), Known("GET", "/seats"), Known("POST", "/seats/ceo/messages")]
)
@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("Host", "evil.example", "wrong_host"), ("Origin", "http://evil.example", "wrong_origin")],
)
async def test_a_foreign_page_reaches_no_route(tmp_path: Path, known: Known, name: str, value: str, code: str) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        answer = await client.request(known.method, known.path, headers={name: value})

    assert (answer.status_code, answer.json()["error"], node.sent) == (403, code, [])


@pytest.mark.parametrize(("name", "value"), [("Host", "evil.example"), ("Origin", "http://evil.example")])
async def test_a_foreign_page_opens_no_socket(tmp_path: Path, name: str, value: str) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path)) as server:
        url = f"ws://127.0.0.1:{server.port}/ws/stream?token={TOKEN}"
        headers = {"Origin": value} if name == "Origin" else {}
        uri = url if name == "Origin" else url.replace("127.0.0.1", value)
        where: dict[str, Any] = {} if name == "Origin" else {"host": "127.0.0.1", "port": server.port}
        with pytest.raises(InvalidStatus) as refused:
            await connect(uri, additional_headers=headers, proxy=None, **where)

    assert (refused.value.response.status_code, node.feeds) == (403, [])


async def test_a_page_of_the_node_itself_may_ask(tmp_path: Path) -> None:
    async with serving(SmallNode(), config(tmp_path)) as server, asking(server) as client:
        answer = await client.get("/seats", headers={"Origin": server.url})

    assert answer.status_code == 200
