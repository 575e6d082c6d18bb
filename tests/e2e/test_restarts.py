"""What an engine keeps when it, or its broker alone, goes away and comes back."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import httpx
import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ASK_CTO, ECHO, company, role, scripted, write_script

KILLED_ENGINE = Path(__file__).with_name("killed_engine.py")
STEPS_OF_A_START = (1, 12, 25, 40)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def echo_company(directory: Path, *, delay_ms: int = 0) -> EngineFiles:
    write_script(directory, ECHO, delay_ms=delay_ms)
    return await write_engine_files(directory, company(role("ceo"), llm={"script": scripted()}))


async def begun(engine: Engine, message_id: str) -> None:
    async def runs() -> bool:
        return bool((await engine.api.message(message_id))["turns"])

    await wait_until(runs, what="the turn's start")


async def test_messages_turns_and_events_are_read_after_a_restart_as_before_it(tmp_path: Path) -> None:
    write_script(tmp_path, *ASK_CTO)
    document = company(role("ceo"), role("cto"), llm={"script": scripted()})
    files = await write_engine_files(tmp_path, document)
    async with running_engine(files) as first:
        before = await first.api.final_message(await first.api.send("ceo", "When?"))
        turn_before = await first.api.get(f"/turns/{before['turns'][0]['turn_id']}")
        rows_before = (await first.api.get("/events", limit="400"))["events"]
        await first.kill()
    async with running_engine(files) as second:
        rows = (await second.api.get("/events", limit="400"))["events"]

        assert before["answer"] == "The CTO says: I heard: When?"
        assert await second.api.message(before["id"]) == before
        assert await second.api.get(f"/turns/{before['turns'][0]['turn_id']}") == turn_before
        known = {row["id"] for row in rows_before}
        assert [row for row in rows if row["id"] in known] == rows_before


async def test_a_broker_that_is_killed_comes_back_and_the_turn_under_way_is_answered(tmp_path: Path) -> None:
    files = await echo_company(tmp_path, delay_ms=500)
    async with running_engine(files) as engine:
        message_id = await engine.api.send("ceo", "First")
        await begun(engine, message_id)
        killed = engine.broker()

        os.kill(killed.pid, signal.SIGKILL)

        message = await engine.api.final_message(message_id, timeout_s=30)
        assert (message["state"], message["answer"]) == ("answered", "You said: First")
        assert engine.broker() != killed
        assert "broker_restarted" in engine.err
        assert "Traceback" not in engine.err


async def test_while_the_broker_is_away_the_node_says_so_and_takes_messages_again_after(tmp_path: Path) -> None:
    files = await echo_company(tmp_path)
    async with running_engine(files) as engine:
        os.kill(engine.broker().pid, signal.SIGSTOP)
        stopped = engine.broker()

        async def is_unready() -> bool:
            return not await engine.api.is_ready()

        await wait_until(is_unready, what="the node's word that it has no broker", timeout_s=20)
        with pytest.raises(httpx.HTTPStatusError) as refused:
            await engine.api.send("ceo", "Lost?")
        assert refused.value.response.status_code == 503
        os.kill(stopped.pid, signal.SIGKILL)

        await wait_until(engine.api.is_ready, what="readiness", timeout_s=20)
        message = await engine.api.final_message(await engine.api.send("ceo", "Again"))
        assert message["answer"] == "You said: Again"


async def test_an_engine_killed_while_it_starts_leaves_the_work_to_the_next(tmp_path: Path) -> None:
    """The start is a sweep of its own: mail is given back, seats are claimed, and any step may be the last."""
    files = await echo_company(tmp_path, delay_ms=30_000)
    async with running_engine(files) as engine:
        message_id = await engine.api.send("ceo", "First")
        await begun(engine, message_id)
        await engine.kill()
    write_script(tmp_path, ECHO)
    for nth in STEPS_OF_A_START:
        command = (sys.executable, str(KILLED_ENGINE), str(tmp_path / f"start-{nth}.log"), "start", str(nth), "run")
        engine = Engine(files, command=command)
        try:
            await engine.start()
            assert await engine.ended() == -signal.SIGKILL
        finally:
            await engine.close()
    async with running_engine(files) as engine:
        message = await engine.api.final_message(message_id)

        assert (message["state"], message["answer"]) == ("answered", "You said: First")


async def test_mail_that_is_kept_in_memory_alone_is_said_so_wherever_one_looks(tmp_path: Path) -> None:
    write_script(tmp_path, ECHO)
    document = company(role("ceo"), llm={"script": scripted()})
    files = await write_engine_files(tmp_path, document, node={"stream": {"store_dir": ""}})
    async with running_engine(files) as engine:
        message = await engine.api.final_message(await engine.api.send("ceo", "Hello"))

        assert message["answer"] == "You said: Hello"
        assert "stream_in_memory" in engine.err
        assert "IN MEMORY" in engine.out
        assert (await engine.api.get("/health"))["stream_in_memory"] is True
        assert await engine.drained() == 0


async def test_records_that_are_kept_in_memory_alone_are_lost_loudly_with_their_broker_and_kept_again(
    tmp_path: Path,
) -> None:
    write_script(tmp_path, ECHO)
    document = company(role("ceo"), llm={"script": scripted()})
    files = await write_engine_files(tmp_path, document, node={"stream": {"store_dir": ""}})
    async with running_engine(files) as engine:
        await engine.api.final_message(await engine.api.send("ceo", "First"))
        killed = engine.broker()
        os.kill(killed.pid, signal.SIGKILL)

        async def is_kept_again() -> bool:
            try:
                page = await engine.api.get("/coordination/ledger", **{"class": "ceo"})
            except httpx.HTTPStatusError:
                return False
            return len(page["records"]) == 1

        await engine.says("bucket_recreated")
        await engine.api.final_message(await engine.api.send("ceo", "Second"), timeout_s=30)
        await wait_until(is_kept_again, what="the second message's completion, the first one's being lost")

        assert await engine.drained() == 0
