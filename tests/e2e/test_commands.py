"""The commands against a running node, as a person types them."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import CREWLET, run_command, running_engine
from crewlet.testing.ports import free_port
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

INSTALLED = (str(Path(sys.executable).with_name("crewlet")),)


async def echo_company(directory: Path) -> EngineFiles:
    write_script(directory, ECHO)
    return await write_engine_files(directory, company(role("ceo"), role("engineer"), llm={"script": scripted()}))


async def test_init_writes_a_company_that_runs_and_answers_without_a_key(tmp_path: Path) -> None:
    written = await run_command("init", "start", cwd=tmp_path, program=INSTALLED)
    files = EngineFiles(tmp_path / "start", free_port())
    text = files.node_file.read_text()
    files.node_file.write_text(text.replace("port: 8000", f"port: {files.port}"))

    async with running_engine(files, command=(*INSTALLED, "run")) as engine:
        asked = await run_command("ask", "ceo", "What first?", cwd=files.directory, program=INSTALLED)

        assert (written.code, asked.code) == (0, 0)
        assert written.out.splitlines()[-1].startswith("next: cd start && ")
        assert written.out.endswith("crewlet run\n")
        assert "script, not to a model" in asked.out
        assert "not a real model" in asked.err
        assert "not a real model" in engine.out
        assert str(files.port) in engine.out


async def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "company.yaml").write_text("mine")

    again = await run_command("init", ".", cwd=tmp_path)

    assert again.code != 0
    assert "company.yaml" in again.err
    assert "Traceback" not in again.err
    assert (tmp_path / "company.yaml").read_text() == "mine"


async def test_seats_are_listed_for_people_and_for_programs(tmp_path: Path) -> None:
    files = await echo_company(tmp_path)
    async with running_engine(files):
        listed = await run_command("seats", cwd=tmp_path)
        told = await run_command("seats", "--json", cwd=tmp_path)

        assert "ceo" in listed.out
        assert "not a real model" in listed.out
        seats = json.loads(told.out)["seats"]
        assert [(seat["handle"], seat["held_here"], seat["activity"]) for seat in seats] == [
            ("ceo", True, "idle"),
            ("engineer", True, "idle"),
        ]


async def test_ask_prints_the_answer_alone_where_it_is_told_to(tmp_path: Path) -> None:
    files = await echo_company(tmp_path)
    async with running_engine(files):
        quiet = await run_command("ask", "ceo", "Hello", "--quiet", cwd=tmp_path)
        as_json = await run_command("ask", "ceo", "Hello", "--json", cwd=tmp_path)
        by_url = await run_command(
            "ask", "ceo", "Hello", "--quiet", "--url", files.url, "-c", str(files.node_file), cwd=tmp_path.parent
        )

        assert (quiet.code, quiet.out, quiet.err) == (0, "You said: Hello\n", "")
        assert json.loads(as_json.out)["answer"] == "You said: Hello"
        assert (by_url.code, by_url.out) == (0, "You said: Hello\n")


async def test_events_are_listed_by_type_and_seat(tmp_path: Path) -> None:
    files = await echo_company(tmp_path)
    async with running_engine(files) as engine:
        await engine.api.final_message(await engine.api.send("ceo", "Hello"))
        await engine.api.final_message(await engine.api.send("engineer", "Hello"))

        ended = await run_command(
            "events", "--type", "agent_turn_completed", "--seat", "engineer", "--json", cwd=tmp_path
        )

        rows = [json.loads(line) for line in ended.out.splitlines()]
        assert [(row["type"], row["agent_handle"]) for row in rows] == [("agent_turn_completed", "engineer")]


async def test_events_are_followed_from_the_past_into_the_present_until_ctrl_c(tmp_path: Path) -> None:
    files = await echo_company(tmp_path)
    async with running_engine(files) as engine:
        await engine.api.final_message(await engine.api.send("ceo", "Before"))
        follower = await asyncio.create_subprocess_exec(
            *[*CREWLET, "events", "--follow", "--json", "--type", "agent_turn_completed"],
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert follower.stdout is not None
            async with asyncio.timeout(20):
                past = json.loads(await follower.stdout.readline())
                await engine.api.send("ceo", "Now")
                present = json.loads(await follower.stdout.readline())
                follower.send_signal(signal.SIGINT)
                _, err = await follower.communicate()
        finally:
            if follower.returncode is None:
                follower.kill()
                await follower.wait()

        assert past["id"] != present["id"]
        assert {past["type"], present["type"]} == {"agent_turn_completed"}
        assert follower.returncode == 130
        assert b"Traceback" not in err
