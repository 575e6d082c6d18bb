"""A key that one node's vendor call found limited: its peers are spared the call, and a changed company remembers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.model_replies import HttpError
from crewlet.testing.model_servers import ModelServer
from tests.broker.test_external_broker import TOKEN, external_broker
from tests.e2e.companies import KEYS, Json, company, role, vendor
from tests.e2e.model_talk import Talk, reviews, submits, talking_engine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LIMITED = HttpError(status=429, message="slow down", type="rate_limit_error", headers={"retry-after": "600"})
FIRST, SECOND = KEYS["FIRST_KEY"], KEYS["SECOND_KEY"]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as started:
        yield started


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    async with external_broker(folder) as url:
        yield url


def on_two_keys(server: ModelServer) -> dict[str, Json]:
    return {"model": vendor("openai", server.openai_url, "FIRST_KEY", "SECOND_KEY")}


async def node_files(folder: Path, broker: str, name: str, server: ModelServer) -> EngineFiles:
    seats = [role(f"of-{each}", "model", placement={"node": each}) for each in ("north", "south")]
    node = {
        "node": {"id": name},
        "stream": {"type": "nats", "url": broker, "token": TOKEN},
        "coordination": {"type": "embedded-kv", "lease_ttl_seconds": 6},
    }
    return await write_engine_files(folder / name, company(*seats, llm=on_two_keys(server)), node=node)


async def cooldowns(engine: Engine) -> list[Json]:
    records = await engine.api.get("/coordination/cooldowns", **{"class": "credential"})
    return [record["value"] for record in records["records"]]


@pytest.mark.spec("C-094", "C-103", "C-104")
async def test_what_one_nodes_call_found_limited_no_other_node_asks_for(
    tmp_path: Path, broker: str, server: ModelServer
) -> None:
    server.will(LIMITED, submits("From the north."), reviews(), submits("From the south."), reviews())
    async with running_engine(await node_files(tmp_path, broker, "north", server), environment=KEYS) as north:
        there = await Talk(north, server).ask(seat="of-north")
        [cooldown] = await cooldowns(north)
        async with running_engine(await node_files(tmp_path, broker, "south", server), environment=KEYS) as south:
            here = await Talk(south, server).ask(seat="of-south")
            said = [line for line in south.err.splitlines() if "credential_cooled_by_peer" in line]

    assert (there["answer"], here["answer"]) == ("From the north.", "From the south.")
    assert Talk(south, server).keys_shown() == [FIRST, SECOND, SECOND, SECOND, SECOND]
    assert (cooldown["provider_key"], cooldown["reported_by"]) == ("model", "north")
    assert len(said) == 1
    assert cooldown["hint"] in said[0]
    assert FIRST not in json.dumps(cooldown) + said[0]


@pytest.mark.spec("C-105")
async def test_a_node_that_is_alone_shares_no_cooldown_and_a_changed_company_remembers_it(
    tmp_path: Path, server: ModelServer
) -> None:
    server.will(LIMITED, submits("Before."), reviews(), submits("After."), reviews())
    llm = on_two_keys(server)
    async with talking_engine(tmp_path, role("ceo", "model"), llm=llm, server=server) as talk:
        before = await talk.ask()
        changed = company(role("ceo", "model"), role("cto", "model"), llm=llm)
        await talk.engine.api.post("/company", {"document": json.dumps(changed)})
        after = await talk.ask()
        shared = await cooldowns(talk.engine)
        note = (await talk.engine.api.get("/coordination/cooldowns"))["note"]

    assert (before["answer"], after["answer"]) == ("Before.", "After.")
    assert talk.keys_shown() == [FIRST, SECOND, SECOND, SECOND, SECOND]
    assert shared == []
    assert "own process" in note


async def test_mail_waits_while_the_only_key_rests_and_a_company_with_another_one_answers_it(
    tmp_path: Path, server: ModelServer
) -> None:
    server.will(LIMITED, submits("At last."), reviews())
    llm = {"model": vendor("openai", server.openai_url, "FIRST_KEY")}
    async with talking_engine(tmp_path, role("ceo", "model"), llm=llm, server=server) as talk:
        sent = await talk.engine.api.send("ceo", "Well?")
        await talk.engine.says("seat_held_while_keys_rest")
        mended = company(role("ceo", "model"), llm={"model": vendor("openai", server.openai_url, "SECOND_KEY")})
        await talk.engine.api.post("/company", {"document": json.dumps(mended)})
        message = await talk.engine.api.final_message(sent)

    assert message["answer"] == "At last."
    assert [turn["state"] for turn in message["turns"]] == ["redelivered", "done"]
    assert talk.keys_shown() == [FIRST, SECOND, SECOND]
