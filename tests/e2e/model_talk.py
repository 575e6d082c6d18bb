"""What a model says in the conversations of these tests, in the order in which an engine asks."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.model_replies import Answer, CallOut
from crewlet.testing.model_servers import ModelServer
from tests.e2e.companies import KEYS, Json, company


def calls(tool: str, said: str = "", /, **arguments: object) -> Answer:
    return Answer(text=said, calls=(CallOut(tool, json.dumps(arguments)),))


def submits(summary: str, said: str = "", /, **fields: object) -> Answer:
    return calls("submit_work", said, outcome="delivered", summary=summary, **fields)


def reviews(decision: str = "done", **fields: object) -> Answer:
    return calls("submit_review", decision=decision, **fields)


@dataclass(frozen=True, slots=True)
class Talk:
    """A running engine, and the model server that its seats talk to."""

    engine: Engine
    server: ModelServer

    @property
    def files(self) -> EngineFiles:
        return self.engine.files

    async def ask(self, text: str = "Well?", *, seat: str = "ceo") -> Json:
        """Send a message, and wait for its end."""
        return await self.engine.api.final_message(await self.engine.api.send(seat, text))

    def tools_offered(self) -> set[str]:
        """The tools that any request declared."""
        declared = [tool for request in self.server.requests for tool in request.body.get("tools", [])]
        return {tool.get("function", tool)["name"] for tool in declared}

    def keys_shown(self) -> list[str]:
        """The key that each request carried."""
        headers = [request.headers for request in self.server.requests]
        return [each.get("x-api-key") or each["authorization"].removeprefix("Bearer ") for each in headers]


@asynccontextmanager
async def talking_engine(
    directory: Path, *roles: Json, llm: dict[str, Json], server: ModelServer, **fields: object
) -> AsyncGenerator[Talk]:
    """An engine of a company whose models are on ``server``."""
    files = await write_engine_files(directory, company(*roles, llm=llm, **fields))
    async with running_engine(files, environment=KEYS) as engine:
        yield Talk(engine, server)
