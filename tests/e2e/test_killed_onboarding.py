"""kill -9 between the steps of a turn that begins with an onboarding: each seat is onboarded once, and answers once."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from crewlet import topics
from crewlet.llm import ModelRequest, ToolResultMessage
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.model_replies import ServerReply
from crewlet.testing.model_servers import ModelServer
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import KEYS, Json, company, notes_server, role, vendor
from tests.e2e.model_talk import calls, reviews, submits

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLED_ENGINE = Path(__file__).with_name("killed_engine.py")
KILL_9 = -9
TOKENS_A_REPLY = 11 + 7
STEP = int(os.environ.get("CREWLET_EVERY_STEP") or 29)
"""Every how-manieth step kills; the first lives die before anything of the onboarding is on record."""
STEPS_MAX = 400
EVENTS_MAX = 400
LOOKS_AROUND = (
    calls("list_mcp_server_tools", server="notes"),
    calls("activate_tool", name="list_notes"),
    calls("list_notes"),
    calls("mark_onboarded", notes="I know my way."),
)


def in_its_place(request: ModelRequest) -> ServerReply:
    """What the model says by what it is offered and was told, whoever asks it again."""
    offered = {tool.name for tool in request.tools}
    if "mark_onboarded" in offered:
        made = sum(isinstance(message, ToolResultMessage) for message in request.messages)
        return LOOKS_AROUND[min(made, len(LOOKS_AROUND) - 1)]
    return submits("Done.") if "submit_work" in offered else reviews()


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(in_its_place) as started:
        yield started


@asynccontextmanager
async def engine_killed_at(nth: int, files: EngineFiles, log: Path) -> AsyncGenerator[Engine]:
    command = (sys.executable, str(KILLED_ENGINE), str(log), "message", str(nth), "run")
    engine = Engine(files, command=command, environment=KEYS)
    try:
        yield await engine.start()
    finally:
        await engine.close()


async def accepted(engine: Engine, seat: str) -> str:
    try:
        return await engine.api.send(seat, "Well?")
    except httpx.TransportError:
        return ""


async def ended_or_answered(engine: Engine, message_id: str) -> None:
    async def holds() -> bool:
        if engine.exit_code is not None:
            return True
        try:
            return bool(message_id) and (await engine.api.message(message_id))["state"] == "answered"
        except httpx.TransportError:
            return False

    await wait_until(holds, what="an answer or the end of the engine", timeout_s=60)


async def recovered(engine: Engine, lives: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    """What the life before this one left behind is worked."""
    for message_id, _ in [*lives.values()][-1:]:
        await engine.api.final_message(message_id, timeout_s=60)


async def of_turns(engine: Engine, event_type: str) -> list[Json]:
    return await engine.api.events(event_type, limit=EVENTS_MAX)


async def wrong_with(engine: Engine, seat: str, message_id: str, log: tuple[str, ...]) -> list[str]:
    message = await engine.api.final_message(message_id, timeout_s=60)
    wrong = [] if message["answer"] == "Done." else [f"ended as {message['state']}: {message['reason']}"]
    mine = [each for each in await of_turns(engine, "agent_phase_completed") if each["agent_handle"] == seat]
    phases = Counter((each["phase"], each["decision"]) for each in mine)
    # A turn whose opening is not on record has left its claim behind: it lapses, and the next turn asks again.
    was_opened = f"= request {topics.journal(seat)}" in log
    onboarded = {("onboarding", "onboarded"): 1} if was_opened or ("onboarding", "onboarded") in phases else {}
    if phases != Counter({**onboarded, ("execute", "delivered"): 1, ("review", "done"): 1}):
        wrong.append(f"phases {dict(phases)}")
    recorded = sum(len(each["rounds"]) for each in mine)
    if sum(each["total_tokens"] for each in mine) != recorded * TOKENS_A_REPLY:
        wrong.append("a record's tokens are not its rounds'")
    scopes = (await engine.api.get("/budgets"))["scopes"]
    counted = next((each["windows"][2]["used"] for each in scopes if each["handle"] == seat), 0)
    if counted != recorded * TOKENS_A_REPLY:
        wrong.append(f"counted {counted} of {recorded} replies")
    return wrong


async def test_killed_before_any_step_a_seat_is_onboarded_and_answers_once(tmp_path: Path, server: ModelServer) -> None:
    kills = [*range(1, STEPS_MAX, STEP)]
    seats = {nth: f"s{nth}" for nth in kills}
    document = company(
        *(role(seat, "model") for seat in seats.values()),
        llm={"model": vendor("openai-compatible", server.openai_url)},
        turn_engine={},
        mcp_servers=[notes_server()],
        token_budget={"month": 1_000_000},
    )
    files = await write_engine_files(tmp_path, document)
    lives: dict[str, tuple[str, tuple[str, ...]]] = {}
    was_killed = True
    for nth, seat in seats.items():
        log = tmp_path / f"steps-{nth}.log"
        async with engine_killed_at(nth, files, log) as engine:
            await engine.ready(timeout_s=60)
            await recovered(engine, lives)
            message_id = await accepted(engine, seat)
            await ended_or_answered(engine, message_id)
            was_killed = engine.exit_code is not None
            if was_killed:
                assert await engine.ended(timeout_s=5) == KILL_9
        if message_id:
            lives[seat] = (message_id, tuple(log.read_text().splitlines()))
        if not was_killed:
            break

    wrong: list[str] = []
    async with running_engine(files, environment=KEYS) as engine:
        for seat, (message_id, log_lines) in lives.items():
            found = await wrong_with(engine, seat, message_id, log_lines)
            wrong += [f"{seat} ({log_lines[-1]}): {what}" for what in found]

    assert wrong == []
    assert not was_killed
    assert len(lives) > 40 / STEP
