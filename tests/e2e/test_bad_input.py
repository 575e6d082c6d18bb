"""What people get wrong: each mistake is told in one clear message with its place or its remedy, and no traceback."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from crewlet.base.clock import SystemClock
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import CommandResult, Engine, run_command, running_engine
from tests.e2e.companies import ECHO, Json, company, role, scripted, vendor, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

SECOND_ENGINE_REFUSED_S = 9.0
"""Five seconds of waiting for the directory, and the start of the interpreter on a busy machine."""


async def small_company(directory: Path, *, node: Json | None = None, **fields: object) -> EngineFiles:
    write_script(directory, ECHO)
    document = company(role("ceo"), llm={"script": scripted()}, **fields)
    return await write_engine_files(directory, document, node=node)


async def run(files: EngineFiles) -> CommandResult:
    return await run_command("run", *files.run_options, cwd=files.directory)


def told(result: CommandResult) -> str:
    """The one message that a command ends with, and nothing of a stack anywhere."""
    assert result.code != 0
    assert "Traceback" not in result.err + result.out
    first, said, message = result.err.rpartition("crewlet: ")
    assert said, result.err
    assert not any(line.startswith("crewlet: ") for line in first.splitlines())
    return message.strip()


async def test_a_document_that_is_no_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    files = await small_company(tmp_path)
    files.company_file.write_text("name: Testers\nroles: [\n")

    message = told(await run(files))

    assert "company.yaml:3: is not valid YAML" in message


async def test_an_unknown_key_is_refused_with_its_place_and_the_likely_one(tmp_path: Path) -> None:
    files = await small_company(tmp_path, polices=["Be kind."])

    message = told(await run(files))

    assert "polices: unknown key (did you mean `policies`?)" in message
    assert f"{files.company_file}:" in message


async def test_an_unknown_key_of_the_node_file_is_refused_too(tmp_path: Path) -> None:
    files = await small_company(tmp_path, node={"steam": {}})

    message = told(await run(files))

    assert "steam: unknown key (did you mean `stream`?)" in message


async def test_a_handle_given_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    files = await small_company(tmp_path)
    document = company(role("ceo"), role("ceo"), llm={"script": scripted()})
    files.company_file.write_text(json.dumps(document, indent=1))

    message = told(await run(files))

    assert "roles[1].handle" in message
    assert "roles[0]" in message


async def test_a_model_without_its_key_is_refused_naming_entry_and_variable(tmp_path: Path) -> None:
    document = company(role("ceo", "model"), llm={"model": vendor("openai-compatible", "http://127.0.0.1:1/v1")})
    files = await write_engine_files(tmp_path, document)

    message = told(await run(files))

    assert "providers.llm.model" in message
    assert "FIRST_KEY" in message
    assert "optional: true" in message


async def test_a_script_that_is_not_there_is_refused_with_its_path(tmp_path: Path) -> None:
    files = await write_engine_files(tmp_path, company(role("ceo"), llm={"script": scripted("gone.yaml")}))

    message = told(await run(files))

    assert str(tmp_path / "gone.yaml") in message


async def test_a_port_in_use_is_told_with_the_setting_to_change(tmp_path: Path) -> None:
    files = await small_company(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", files.port))
        taken.listen()

        message = told(await run(files))

    assert f"127.0.0.1:{files.port} is in use" in message
    assert "api.port" in message


async def test_a_data_directory_that_cannot_be_written_is_told_with_the_setting_to_change(tmp_path: Path) -> None:
    files = await small_company(tmp_path, node={"data_dir": "./script.yaml/data"})

    message = told(await run(files))

    assert "script.yaml/data cannot be written" in message
    assert "data_dir" in message


async def test_an_address_open_to_others_needs_a_token(tmp_path: Path) -> None:
    files = await small_company(tmp_path, node={"api": {"host": "0.0.0.0", "port": 1}})

    message = told(await run(files))

    assert "api.auth.tokens" in message


@pytest.mark.parametrize("file", ["node", "company"])
async def test_a_file_that_is_not_there_is_told_with_a_way_to_begin(tmp_path: Path, file: str) -> None:
    files = await small_company(tmp_path)
    (files.node_file if file == "node" else files.company_file).unlink()

    message = told(await run(files))

    assert "there is no such file" in message
    assert "crewlet init" in message


@pytest.mark.alone
async def test_a_second_engine_on_one_data_directory_is_refused_naming_both_processes(tmp_path: Path) -> None:
    files = await small_company(tmp_path)
    clock = SystemClock()
    async with running_engine(files) as engine:
        began_s = clock.elapsed_s()
        message = told(await run(files))
        took_s = clock.elapsed_s() - began_s

        assert str(engine.pid) in message
        assert str(engine.broker().pid) in message
        assert took_s < SECOND_ENGINE_REFUSED_S
        assert await engine.api.is_ready()


async def test_a_tool_server_that_ends_at_its_start_costs_its_tools_and_is_told(tmp_path: Path) -> None:
    broken = {"name": "broken", "command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]}
    files = await small_company(tmp_path, mcp_servers=[broken])
    async with running_engine(files) as engine:
        message = await engine.api.final_message(await engine.api.send("ceo", "Hello"))

        assert message["answer"] == "You said: Hello"
        failed = next(line for line in engine.err.splitlines() if "mcp_server_failed" in line)
        assert "broken" in failed
        assert "no licence" in failed
        assert "Traceback" not in engine.err
        problems = (await engine.api.get("/health"))["problems"]
        assert [problem for problem in problems if "broken" in problem and "no licence" in problem]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[Engine]:
    write_script(tmp_path, ECHO)
    person = {"name": "Founder", "kind": "human", "contact": {"crewlet_operator_id": "operator"}}
    document = company(person, role("ceo"), role("engineer"), llm={"script": scripted()})
    async with running_engine(await write_engine_files(tmp_path, document)) as started:
        yield started


async def test_an_unknown_handle_is_told_with_the_likely_one(engine: Engine) -> None:
    message = told(await run_command("ask", "enginer", "Hello", cwd=engine.files.directory))

    assert "no seat has the handle 'enginer'" in message
    assert "did you mean 'engineer'?" in message


async def test_a_person_is_not_asked(engine: Engine) -> None:
    message = told(await run_command("ask", "founder", "Hello", cwd=engine.files.directory))

    assert "'founder' is a person's" in message


async def test_an_empty_message_is_not_sent(engine: Engine) -> None:
    message = told(await run_command("ask", "ceo", " ", cwd=engine.files.directory))

    assert "the message is empty" in message


@pytest.mark.parametrize("command", [("ask", "ceo", "Hello"), ("seats",), ("events",), ("events", "--follow")])
async def test_a_wrong_token_is_told_with_where_it_came_from(engine: Engine, command: tuple[str, ...]) -> None:
    wrong = {"CREWLET_API_TOKEN": "wrong"}

    message = told(await run_command(*command, cwd=engine.files.directory, environment=wrong))

    assert "token" in message
    assert "CREWLET_API_TOKEN" in message


@pytest.mark.parametrize("command", [("ask", "ceo", "Hello"), ("seats",), ("events",), ("events", "--follow")])
async def test_a_node_that_does_not_run_is_told_with_a_way_to_start_it(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    files = await small_company(tmp_path)

    message = told(await run_command(*command, cwd=tmp_path))

    assert f"no node answers at {files.url}" in message
    assert "crewlet run" in message


async def test_a_broker_that_is_not_there_is_told_with_the_setting_to_change(tmp_path: Path) -> None:
    stream = {"type": "nats", "url": "nats://127.0.0.1:1"}
    files = await small_company(tmp_path, node={"stream": stream, "coordination": {"type": "embedded-kv"}})

    message = told(await run(files))

    assert "no broker answers at nats://127.0.0.1:1" in message
    assert "stream.url" in message
