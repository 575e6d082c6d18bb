"""A client of a running node's API: where it is, which token opens it, and its refusals as one clear line each."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Self, cast
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from crewlet.base.errors import CrewletError
from crewlet.cli.whereabouts import Whereabouts

if TYPE_CHECKING:
    import httpx
    from websockets.asyncio.client import ClientConnection

__all__ = ["ApiClient", "ApiRefused", "NodeUnreachable"]

_REQUEST_TIMEOUT_S: Final = 10.0
_CLOSE_TIMEOUT_S: Final = 1.0
_UNAUTHORIZED: Final = 401
_FRAME_MAX_BYTES: Final = 32 * 1024 * 1024


class NodeUnreachable(CrewletError):
    """No node answers at the address."""


class ApiRefused(CrewletError):
    """The node said no; ``code`` is its word for why, and the message its sentence."""

    def __init__(self, status: int, code: str, message: str, detail: Mapping[str, Any]) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        super().__init__(message or f"the node answered {status} {code}")


class ApiClient:
    """Requests to one node. Use as ``async with ApiClient(whereabouts) as api``."""

    def __init__(self, where: Whereabouts, *, timeout_s: float = _REQUEST_TIMEOUT_S) -> None:
        self._where = where
        self._timeout_s = timeout_s
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        import httpx

        self._http = httpx.AsyncClient(
            base_url=self._where.url, headers=self._where.headers(), timeout=self._timeout_s, trust_env=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object at ``path``. Raises ``NodeUnreachable``, ``ApiRefused``."""
        wanted = {name: value for name, value in (query or {}).items() if value}
        return await self._ask("GET", f"{path}?{urlencode(wanted, errors='surrogateescape')}" if wanted else path)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the node answers to a JSON body. Raises ``NodeUnreachable``, ``ApiRefused``."""
        return await self._ask("POST", path, body)

    async def delete(self, path: str) -> dict[str, Any]:
        """What the node answers to a removal. Raises ``NodeUnreachable``, ``ApiRefused``."""
        return await self._ask("DELETE", path)

    @asynccontextmanager
    async def stream(self) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        """The live frames, until left or until the node closes. Raises ``NodeUnreachable``, ``ApiRefused``."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidStatus, WebSocketException

        scheme, host, path, *_ = urlsplit(self._where.url)
        url = urlunsplit(("wss" if scheme == "https" else "ws", host, f"{path}/ws/stream", "", ""))
        try:
            # A short farewell: frames that wait unread would hold it up.
            socket = await connect(
                url,
                additional_headers=self._where.headers(),
                max_size=_FRAME_MAX_BYTES,
                close_timeout=_CLOSE_TIMEOUT_S,
                proxy=None,
            )
        except InvalidStatus as refused:
            answer = refused.response
            raise self._refusal(answer.status_code, _object_in(bytes(answer.body or b""))) from refused
        except (OSError, WebSocketException) as error:
            raise NodeUnreachable(self._unreachable(error)) from error
        # What fails while the frames are used is not the node's fault, unless it failed in reading them.
        try:
            yield self._frames(socket)
        finally:
            await socket.close()

    async def _frames(self, socket: ClientConnection) -> AsyncGenerator[dict[str, Any]]:
        from websockets.exceptions import WebSocketException

        try:
            async for frame in socket:
                yield cast("dict[str, Any]", json.loads(frame))
        except (OSError, WebSocketException) as error:
            raise NodeUnreachable(self._unreachable(error)) from error

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        import httpx

        if self._http is None:
            message = "the client is not open"
            raise RuntimeError(message)
        try:
            answer = await self._http.request(method, path, json=body)
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise CrewletError(f"no node can be asked that: {error}") from error
        except (httpx.HTTPError, OSError) as error:
            raise NodeUnreachable(self._unreachable(error)) from error
        said = _object_in(answer.content)
        if answer.is_success:
            return said
        raise self._refusal(answer.status_code, said)

    def _refusal(self, status: int, said: Mapping[str, Any]) -> ApiRefused:
        """The node's own sentence, but for a token: where ours came from is what helps."""
        sentence = str(said.get("message", "")) or f"{self._where.url} answered {status}"
        if status == _UNAUTHORIZED:
            sentence = self._without_access()
        return ApiRefused(status, str(said.get("error", "refused")), sentence, said)

    def _without_access(self) -> str:
        where = self._where
        if where.token:
            return f"{where.url} refuses the token ({where.found_in}); set CREWLET_API_TOKEN or give -c"
        return (
            f"{where.url} wants a token, and there is none to show ({where.found_in}); is it this folder's node that "
            "runs there? Set CREWLET_API_TOKEN, or give -c with its node file"
        )

    def _unreachable(self, error: Exception) -> str:
        if _comes_of(error, TimeoutError):
            return f"{self._where.url} does not answer in time; its node's log may say why, or give --url or -c"
        refused = _comes_of(error, ConnectionRefusedError)
        why = "nothing listens there" if refused else str(error) or type(error).__name__
        return f"no node answers at {self._where.url} ({why}); start one with `crewlet run`, or give --url or -c"


def _comes_of(error: BaseException | None, root: type[OSError]) -> bool:
    """Whether ``root`` is at the root of whatever a library made of it."""
    while error is not None:
        if isinstance(error, root):
            return True
        error = error.__cause__ or error.__context__
    return False


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}


def segment(text: str) -> str:
    """``text`` as one segment of a path, of which no dots lead to another and no bytes of a shell's are too odd."""
    quoted = quote(text, safe="", errors="surrogateescape")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def environment() -> Mapping[str, str]:
    """The process's environment; commands are the one floor that reads it."""
    return os.environ
