"""A running engine takes a changed company: seats come and go, a running turn keeps its own, a refusal is no change."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, run_command, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, notes_server, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Json = dict[str, Any]
LLM = {"script": scripted()}


async def files_of(folder: Path, *roles: Json, delay_ms: int = 0) -> EngineFiles:
    write_script(folder, ECHO, delay_ms=delay_ms)
    return await write_engine_files(folder, company(*roles, llm=LLM))


async def applied(engine: Engine, document: Json) -> Json:
    return await engine.api.post("/company", {"document": json.dumps(document)})


async def held(engine: Engine) -> list[str]:
    return list((await engine.api.get("/health"))["seats"])


async def holds(engine: Engine, *handles: str) -> None:
    async def are_held() -> bool:
        return sorted(await held(engine)) == sorted(handles)

    await wait_until(are_held, what=f"{handles} held", timeout_s=15)


async def test_a_seat_that_comes_answers_and_one_that_leaves_is_given_back(tmp_path: Path) -> None:
    async with running_engine(await files_of(tmp_path, role("ceo"), role("ops"))) as engine:
        change = await applied(engine, company(role("ceo"), role("dev"), llm=LLM))
        await holds(engine, "ceo", "dev")
        answer = await engine.api.final_message(await engine.api.send("dev", "Hi"))
        (node,) = (await engine.api.get("/query/fleet"))["nodes"]
        with pytest.raises(httpx.HTTPStatusError, match="404"):
            await engine.api.send("ops", "Hi")

        assert change["seats"] == {"added": ["dev"], "removed": ["ops"], "changed": []}
        assert (change["epoch"], change["lasts"], node["config_epoch"]) == (2, False, 2)
        assert answer["answer"] == "You said: Hi"


async def test_mail_for_a_seat_that_comes_is_kept_from_the_answer_on(tmp_path: Path) -> None:
    """It is sent before anybody can hold the seat: its mailbox is there first."""
    async with running_engine(await files_of(tmp_path, role("ceo"))) as engine:
        for number in range(3):
            handles = [f"dev{each}" for each in range(number + 1)]
            await applied(engine, company(role("ceo"), *map(role, handles), llm=LLM))
            sent = await engine.api.send(handles[-1], f"Hi {number}")

            assert (await engine.api.final_message(sent))["answer"] == f"You said: Hi {number}"


async def test_a_running_turn_keeps_the_company_that_it_began_with(tmp_path: Path) -> None:
    async with running_engine(await files_of(tmp_path, role("ceo"), delay_ms=3000)) as engine:
        first = await engine.api.send("ceo", "Hi")

        async def is_running() -> bool:
            return any(turn["state"] == "running" for turn in (await engine.api.message(first))["turns"])

        await wait_until(is_running, what="the turn", timeout_s=20)
        write_script(tmp_path, {"when": {"phase": "execute"}, "say": "Something new"}, name="new.yaml")
        await applied(engine, company(role("ceo"), llm={"script": scripted("new.yaml")}))
        running = await is_running()
        second = await engine.api.send("ceo", "Hi again")

        assert running
        assert (await engine.api.final_message(first))["answer"] == "You said: Hi"
        assert (await engine.api.final_message(second))["answer"] == "Something new"


async def test_a_refused_document_leaves_everything_as_it_was(tmp_path: Path) -> None:
    files = await files_of(tmp_path, role("ceo"))
    wrong = company(role("dev", "nobody"), llm={"script": scripted("missing.yaml")})
    (tmp_path / "wrong.yaml").write_text(json.dumps(wrong, indent=2))
    async with running_engine(files) as engine:
        before = await engine.api.get("/company")

        code = await run_command("apply", "wrong.yaml", "-c", str(files.node_file), cwd=tmp_path)
        answer = await engine.api.final_message(await engine.api.send("ceo", "Hi"))

        assert code.code == 2, code.err
        assert "nobody" in code.err
        assert await engine.api.get("/company") == before
        assert (await held(engine), answer["answer"]) == (["ceo"], "You said: Hi")


async def test_a_file_that_the_document_names_and_nobody_has_is_a_refusal_too(tmp_path: Path) -> None:
    async with running_engine(await files_of(tmp_path, role("ceo"))) as engine:
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            await applied(engine, company(role("dev"), llm={"script": scripted("missing.yaml")}))

        assert await held(engine) == ["ceo"]


async def test_a_seat_whose_own_tools_changed_is_established_anew_and_shared_ones_come_and_go(tmp_path: Path) -> None:
    def with_desk(note: str) -> Json:
        desk = notes_server(name="desk", shared=False)
        return company(role("ceo", mcp_env={"desk": {"NOTE": note}}), role("cto"), llm=LLM, mcp_servers=[desk])

    write_script(tmp_path, ECHO)
    files = await write_engine_files(tmp_path, with_desk("old"))
    async with running_engine(files) as engine:
        before = await epochs(engine)

        change = await applied(engine, with_desk("new"))

        async def is_anew() -> bool:
            now = await epochs(engine)
            return now["ceo"] is not None and now["ceo"] > before["ceo"]

        await wait_until(is_anew, what="the ceo established anew", timeout_s=15)
        assert change["tools_renewed"] == ["ceo"]
        assert (await epochs(engine))["cto"] == before["cto"]
        assert (await engine.api.final_message(await engine.api.send("ceo", "Hi")))["answer"] == "You said: Hi"


async def test_a_new_tool_server_that_fails_is_reported_by_seat_and_node_with_a_code_of_its_own(tmp_path: Path) -> None:
    broken = {"name": "desk", "shared": False, "command": sys.executable, "args": ["-c", "raise SystemExit('no key')"]}
    changed = company(role("ceo", mcp_env={"desk": {"NOTE": "x"}}), role("cto"), llm=LLM, mcp_servers=[broken])
    mended = company(
        role("ceo", mcp_env={"desk": {"NOTE": "x"}}),
        role("cto"),
        llm=LLM,
        mcp_servers=[notes_server(name="desk", shared=False)],
    )
    files = await files_of(tmp_path, role("ceo"), role("cto"))
    (tmp_path / "changed.yaml").write_text(json.dumps(changed))
    (tmp_path / "mended.yaml").write_text(json.dumps(mended))
    async with running_engine(files) as engine:
        refused = await run_command("apply", "changed.yaml", "-c", str(files.node_file), cwd=tmp_path)
        settled = await run_command("apply", "mended.yaml", "-c", str(files.node_file), cwd=tmp_path)
        again = await run_command("apply", "changed.yaml", "-c", str(files.node_file), cwd=tmp_path)
        without = await run_command("apply", "company.yaml", "-c", str(files.node_file), cwd=tmp_path)

        assert (refused.code, "in force as number 2" in refused.out) == (4, True), refused
        assert "the tool server desk of ceo does not serve" in refused.err
        assert "no key" in refused.err
        assert (settled.code, settled.err.count("crewlet:")) == (0, 1), settled
        assert (again.code, without.code) == (4, 0), without
        assert (await engine.api.get("/company"))["epoch"] == 5


async def epochs(engine: Engine) -> Json:
    return {seat["handle"]: seat["epoch"] for seat in (await engine.api.get("/seats"))["seats"]}


async def test_a_second_document_is_refused_while_the_first_is_being_applied(tmp_path: Path) -> None:
    slow = [{"name": "slow", "command": "sleep", "args": ["4"]}]
    async with running_engine(await files_of(tmp_path, role("ceo"))) as engine:
        first = asyncio.create_task(applied(engine, company(role("ceo"), role("dev"), llm=LLM, mcp_servers=slow)))

        async def is_in_force() -> bool:
            return (await engine.api.get("/company"))["epoch"] == 2

        await wait_until(is_in_force, what="the first document", timeout_s=10)
        with pytest.raises(httpx.HTTPStatusError, match="409"):
            await applied(engine, company(role("ceo"), llm=LLM))

        assert (await first)["seats"]["added"] == ["dev"]
        assert (await engine.api.get("/company"))["epoch"] == 2


async def test_the_file_is_what_the_next_start_of_a_node_alone_runs(tmp_path: Path) -> None:
    files = await files_of(tmp_path, role("ceo"))
    async with running_engine(files) as engine:
        await applied(engine, company(role("ceo"), role("dev"), llm=LLM))
        await holds(engine, "ceo", "dev")

    async with running_engine(files) as engine:
        assert await held(engine) == ["ceo"]
