"""Ctrl-C: what runs finishes, what waits is left to the next engine, nothing is left behind."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest

from crewlet.base.clock import SystemClock
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, notes_server, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

AT_ONCE_S = 2.0
INTERRUPTED = 130


async def slow_company(directory: Path, *, delay_ms: int) -> EngineFiles:
    """One seat, whose model takes its time, and a tool server."""
    write_script(directory, ECHO, delay_ms=delay_ms)
    document = company(role("ceo"), llm={"script": scripted()}, mcp_servers=[notes_server()])
    return await write_engine_files(directory, document)


async def begun(engine: Engine, message_id: str) -> None:
    """Return once a turn of the message runs."""

    async def runs() -> bool:
        return bool((await engine.api.message(message_id))["turns"])

    await wait_until(runs, what="the turn's start")


@pytest.mark.parametrize("asked_by", [signal.SIGINT, signal.SIGTERM])
async def test_a_running_turn_finishes_and_no_other_begins(tmp_path: Path, asked_by: signal.Signals) -> None:
    files = await slow_company(tmp_path, delay_ms=700)
    async with running_engine(files) as first:
        running = await first.api.send("ceo", "First")
        await begun(first, running)
        waiting = await first.api.send("ceo", "Second")
        first.processes()

        first.signal(asked_by)

        assert await first.ended() == 0
        assert not first.left_behind()
        assert "seat_detached" in first.err
        assert "drain_complete" in first.err
    async with running_engine(files) as second:
        finished = await second.api.message(running)
        left = await second.api.final_message(waiting)

        assert (finished["state"], finished["answer"]) == ("answered", "You said: First")
        assert [turn["state"] for turn in finished["turns"]] == ["done"]
        assert (left["state"], left["answer"]) == ("answered", "You said: Second")
        assert len(left["turns"]) == 1


async def test_a_draining_node_refuses_new_messages_and_still_answers_questions(tmp_path: Path) -> None:
    files = await slow_company(tmp_path, delay_ms=700)
    async with running_engine(files) as engine:
        running = await engine.api.send("ceo", "First")
        await begun(engine, running)

        engine.signal(signal.SIGINT)
        await engine.says("crewlet: draining")

        with pytest.raises(httpx.HTTPStatusError) as refused:
            await engine.api.send("ceo", "Second")
        assert refused.value.response.status_code == 503
        assert refused.value.response.json()["error"] == "draining"
        assert not await engine.api.is_ready()
        assert (await engine.api.message(running))["state"] == "working"
        assert await engine.ended() == 0


@pytest.mark.alone
async def test_a_second_ctrl_c_ends_at_once_and_the_next_engine_finishes_the_work(tmp_path: Path) -> None:
    files = await slow_company(tmp_path, delay_ms=60_000)
    clock = SystemClock()
    async with running_engine(files) as first:
        message_id = await first.api.send("ceo", "First")
        await begun(first, message_id)
        first.processes()
        first.signal(signal.SIGINT)
        await first.says("crewlet: draining")
        asked_s = clock.elapsed_s()

        first.signal(signal.SIGINT)

        assert await first.ended(timeout_s=5) == INTERRUPTED
        assert clock.elapsed_s() - asked_s < AT_ONCE_S
        await first.gone(within_s=AT_ONCE_S)
        assert "Traceback" not in first.err
    write_script(tmp_path, ECHO)
    async with running_engine(files) as second:
        message = await second.api.final_message(message_id)

        assert (message["state"], message["answer"]) == ("answered", "You said: First")


async def test_a_successor_waits_for_the_engine_that_drains(tmp_path: Path) -> None:
    """So a service that is restarted need not be watched until the old process has gone."""
    files = await slow_company(tmp_path, delay_ms=700)
    async with running_engine(files) as first:
        message_id = await first.api.send("ceo", "First")
        await begun(first, message_id)
        first.signal(signal.SIGTERM)
        async with running_engine(files) as second:
            assert first.exit_code == 0
            assert (await second.api.message(message_id))["state"] == "answered"


@pytest.mark.alone
async def test_an_idle_engine_ends_without_delay(tmp_path: Path) -> None:
    files = await slow_company(tmp_path, delay_ms=0)
    clock = SystemClock()
    async with running_engine(files) as engine:
        asked_s = clock.elapsed_s()

        assert await engine.drained() == 0

        assert clock.elapsed_s() - asked_s < 2 * AT_ONCE_S
        assert not engine.left_behind()
        assert "Traceback" not in engine.err


async def test_ctrl_c_during_the_start_ends_it_cleanly(tmp_path: Path) -> None:
    files = await slow_company(tmp_path, delay_ms=0)
    engine = Engine(files)
    try:
        await engine.start()
        await engine.says("broker_started")
        engine.processes()

        engine.signal(signal.SIGINT)

        assert await engine.ended(timeout_s=10) in {0, INTERRUPTED}
        await engine.gone(within_s=AT_ONCE_S)
        assert "Traceback" not in engine.err
    finally:
        await engine.close()
