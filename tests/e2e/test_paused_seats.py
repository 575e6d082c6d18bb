"""A person pauses a seat of a real engine: its mail waits, its turn can be ended, and no restart lifts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LIST_COLLEAGUES = {
    "when": {"phase": "execute", "after": "none", "text": "slow"},
    "call": [{"tool": "lookup_colleague", "with": {"handle": "cto"}}],
    "delay_ms": 1500,
}


async def inbox_of(engine: Engine, seat: str) -> tuple[int, int]:
    boxes = (await engine.api.get("/mailboxes", seat=seat))["mailboxes"]
    box = next(each for each in boxes if each["topic"].endswith(".inbox"))
    return box["pending"], box["held"]


async def test_a_paused_seats_mail_waits_past_a_kill_until_it_is_resumed(tmp_path: Path) -> None:
    write_script(tmp_path, ECHO)
    files = await write_engine_files(tmp_path, company(role("ceo"), role("cto"), llm={"script": scripted()}))

    async with running_engine(files) as engine:
        await engine.api.post("/seats/ceo/pause", {"reason": "audit"})
        message = await engine.api.send("ceo", "Are you there?")
        await engine.api.final_message(await engine.api.send("cto", "And you?"))
        await wait_until(lambda: _waits(engine), what="the mail of the paused seat to wait")
        await engine.kill()
    async with running_engine(files) as engine:
        await engine.api.final_message(await engine.api.send("cto", "Still there?"))
        waiting = await inbox_of(engine, "ceo")
        seat = (await engine.api.get("/seats"))["seats"][0]
        await engine.api.post("/seats/ceo/resume", {})
        answer = await engine.api.final_message(message)

    assert waiting == (1, 0)
    assert (seat["stopped_reason"], seat["paused"]["reason"], seat["paused"]["by"]) == (
        "paused",
        "audit",
        "operator:operator",
    )
    assert answer["answer"] == "You said: Are you there?"


async def test_a_pause_that_stops_ends_the_running_turn_and_its_message_is_done_with(tmp_path: Path) -> None:
    write_script(tmp_path, LIST_COLLEAGUES, ECHO)
    files = await write_engine_files(tmp_path, company(role("ceo"), role("cto"), llm={"script": scripted()}))

    async with running_engine(files) as engine:
        message = await engine.api.send("ceo", "Be slow")
        await wait_until(lambda: _works(engine), what="the turn")
        await engine.api.post("/seats/ceo/pause", {"reason": "wrong customer", "stop_running": True})
        stood = await engine.api.final_message(message)
        row = (await engine.api.events("agent_turn_stopped"))[0]
        stopped = await engine.api.get(f"/events/{row['id']}")
        paused = await engine.api.events("seat_paused")
        waiting = await inbox_of(engine, "ceo")

    assert [turn["state"] for turn in stood["turns"]] == ["stopped"]
    assert "wrong customer" in str(stopped)
    assert len(paused) == 1
    assert waiting == (0, 0)


async def _waits(engine: Engine) -> bool:
    return await inbox_of(engine, "ceo") == (1, 0)


async def _works(engine: Engine) -> bool:
    return (await engine.api.get("/seats"))["seats"][0]["activity"] == "working"
