"""Two nodes on one broker run one document: applied through one, taken by the other, kept over a start."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.broker.test_external_broker import TOKEN, external_broker
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

Json = dict[str, Any]
LLM = {"script": scripted()}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    async with external_broker(folder) as url:
        yield url


async def node_files(folder: Path, url: str, name: str, *handles: str) -> EngineFiles:
    write_script(folder, ECHO)
    node = {
        "node": {"id": name},
        "stream": {"type": "nats", "url": url, "token": TOKEN},
        "coordination": {"type": "embedded-kv", "lease_ttl_seconds": 6},
    }
    return await write_engine_files(folder, company(*map(role, handles), llm=LLM), node=node)


async def handles(engine: Engine) -> list[str]:
    return [seat["handle"] for seat in (await engine.api.get("/seats"))["seats"]]


async def runs(engine: Engine, *wanted: str) -> None:
    async def does() -> bool:
        return await handles(engine) == [*wanted]

    await wait_until(does, what=f"{wanted} in force", timeout_s=15)


async def configs(engine: Engine) -> dict[str, tuple[int | None, str | None]]:
    nodes = (await engine.api.get("/query/fleet"))["nodes"]
    return {node["id"]: (node["config_epoch"], node["config_error"]) for node in nodes}


async def apply(engine: Engine, *wanted: str, script: str = "script.yaml") -> Json:
    document = company(*map(role, wanted), llm={"script": scripted(script)})
    return await engine.api.post("/company", {"document": json.dumps(document)})


@pytest.mark.spec("C-214", "E-113")
async def test_what_one_node_applies_the_other_takes_and_a_node_with_an_old_file_follows(
    broker: str, tmp_path: Path
) -> None:
    old = await node_files(tmp_path / "b", broker, "b", "ceo", "ops")
    async with running_engine(await node_files(tmp_path / "a", broker, "a", "ceo", "ops")) as first:
        published = (await first.api.get("/company"))["epoch"]
        pointer = (await first.api.get("/coordination/config/company.activation"))["value"]
        async with running_engine(old) as second:
            change = await apply(first, "ceo", "dev")
            await runs(second, "ceo", "dev")
            answer = await second.api.final_message(await second.api.send("dev", "Hi"), timeout_s=40)

            async def both_said_so() -> bool:
                return await configs(second) == dict.fromkeys(("a", "b"), (change["epoch"], ""))

            await wait_until(both_said_so, what="both nodes' word", timeout_s=20)
            activated = [await each.api.events("config_revision_activated") for each in (first, second)]
            applied = [await each.api.events("config_revision_applied") for each in (first, second)]
        async with running_engine(old) as again:
            came_back_with = await handles(again)
            warned = "company_document_differs" in again.err

    assert pointer["activated_by"] == "node:a"
    assert [each["handle"] for each in json.loads(pointer["document"])["roles"]] == ["ceo", "ops"]
    assert change["epoch"] > published
    assert change["lasts"]
    assert [[(each["epoch"], each["activated_by"]) for each in told] for told in activated] == [
        [(change["epoch"], "operator:operator")],
        [],
    ]
    assert [[each["epoch"] for each in told] for told in applied] == [[change["epoch"]], [change["epoch"]]]
    assert answer["answer"] == "You said: Hi"
    assert came_back_with == ["ceo", "dev"]
    assert warned


async def test_a_node_that_cannot_run_the_fleets_document_keeps_its_own_and_says_why(
    broker: str, tmp_path: Path
) -> None:
    async with (
        running_engine(await node_files(tmp_path / "a", broker, "a", "ceo")) as first,
        running_engine(await node_files(tmp_path / "b", broker, "b", "ceo")) as second,
    ):
        write_script(tmp_path / "a", ECHO, name="only-here.yaml")

        change = await apply(first, "ceo", "dev", script="only-here.yaml")

        async def is_told() -> bool:
            return "only-here.yaml" in ((await configs(first)).get("b", (None, None))[1] or "")

        await wait_until(is_told, what="the other node's word", timeout_s=20)
        assert (await configs(first))["a"][0] == change["epoch"]
        assert await handles(second) == ["ceo"]
        assert any("only-here.yaml" in each for each in (await second.api.get("/health"))["problems"])

        write_script(tmp_path / "b", ECHO, name="only-here.yaml")
        await wait_until(lambda: _has(second, "dev"), what="the document taken", timeout_s=40)


async def _has(engine: Engine, handle: str) -> bool:
    return handle in await handles(engine)
