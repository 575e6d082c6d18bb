"""A plain HTTP client of an engine under test: it shares no code with the commands that it helps to prove."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import httpx

from crewlet.testing.waiting import wait_until

__all__ = ["EngineApi"]

_TIMEOUT_S: Final = 45.0
_OK: Final = 200
_FINAL: Final = frozenset({"answered", "failed", "skipped"})

Json = dict[str, Any]


class EngineApi:
    """Requests to one engine, under the token of its data directory.

    ``socket``: a Unix socket that leads to it, where it has a network of its own.
    """

    def __init__(self, url: str, token_file: Path, *, socket: Path | None = None) -> None:
        self._token_file = token_file
        transport = None if socket is None else httpx.AsyncHTTPTransport(uds=str(socket))
        self._http = httpx.AsyncClient(base_url=url, timeout=_TIMEOUT_S, trust_env=False, transport=transport)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def is_ready(self) -> bool:
        """Whether the node says that it may be sent work."""
        try:
            return (await self._http.get("/ready")).status_code == _OK
        except httpx.TransportError:
            return False

    async def get(self, path: str, **query: str) -> Json:
        """The JSON object at ``path``. Raises ``httpx.HTTPError``."""
        answer = await self._http.get(path, params=query, headers=self._headers())
        answer.raise_for_status()
        return cast("Json", answer.json())

    async def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """What is answered to a JSON body. Raises ``httpx.HTTPError``."""
        answer = await self._http.post(path, json=dict(body), headers=self._headers())
        answer.raise_for_status()
        return cast("Json", answer.json())

    async def send(self, seat: str, text: str) -> str:
        """Write to a seat; the message's id. Raises ``httpx.HTTPError``."""
        return str((await self.post(f"/seats/{seat}/messages", {"text": text}))["id"])

    async def message(self, message_id: str) -> Json:
        """How a message stands."""
        return await self.get(f"/messages/{message_id}")

    async def final_message(self, message_id: str, *, timeout_s: float = 20.0) -> Json:
        """The message once its standing is final. Raises ``TimeoutError``."""
        last: Json = {}

        async def is_final() -> bool:
            nonlocal last
            last = await self.message(message_id)
            return last["state"] in _FINAL

        try:
            await wait_until(is_final, what="the message's end", timeout_s=timeout_s)
        except TimeoutError as late:
            message = f"the message has not come to an end: {json.dumps(last)}"
            raise TimeoutError(message) from late
        return last

    async def events(self, event_type: str, *, limit: int = 50) -> list[Json]:
        """The payloads of the newest events of a type, newest first."""
        page = await self.get("/events", type=event_type, limit=str(limit))
        return [(await self.get(f"/events/{row['id']}"))["payload"] for row in page["events"]]

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token_file.read_text(encoding='utf-8').strip()}"}
