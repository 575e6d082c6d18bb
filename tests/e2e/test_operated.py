"""What an operator does to an engine: reads its log no longer, and asks it to end while it still starts."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

UNREAD = Path(__file__).with_name("unread_engine.py")
HANGS = {"name": "hangs", "command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
GIVEN_UP = 130

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def test_an_engine_whose_log_nobody_reads_any_more_goes_on(tmp_path: Path) -> None:
    write_script(tmp_path, ECHO)
    files = await write_engine_files(tmp_path, company(role("ceo"), llm={"script": scripted()}))

    async with running_engine(files, command=(sys.executable, str(UNREAD), "run")) as engine:
        os.kill(engine.broker().pid, signal.SIGKILL)
        message = await engine.api.send("ceo", "Are you there?")
        answer = await engine.api.final_message(message)
        code = await engine.drained()

    assert answer["answer"] == "You said: Are you there?"
    assert code == 0


@pytest.mark.parametrize("asked_by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("shared", [True, False])
async def test_a_start_that_hangs_on_a_tool_server_is_given_up_when_asked(
    tmp_path: Path, asked_by: signal.Signals, *, shared: bool
) -> None:
    write_script(tmp_path, ECHO)
    ceo = role("ceo") if shared else role("ceo", mcp_env={"hangs": {"ANY": "thing"}})
    document = company(ceo, llm={"script": scripted()}, mcp_servers=[{**HANGS, "shared": shared}])
    engine = Engine(await write_engine_files(tmp_path, document))
    try:
        await engine.start()
        await wait_until(lambda: any("sleep(600)" in each.command for each in engine.processes()), what="the server")
        engine.signal(asked_by)
        code = await engine.ended(timeout_s=10)
        await engine.gone()
    finally:
        await engine.close()

    assert code == GIVEN_UP
    assert "Traceback" not in engine.err
