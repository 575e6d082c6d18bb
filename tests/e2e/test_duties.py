"""A running engine does the company's duties, and hands them over when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Json = dict[str, Any]


async def maintenance(engine: Engine) -> Json:
    """The record of the lease on maintenance, once there is one."""
    found: list[Json] = []

    async def is_claimed() -> bool:
        page = await engine.api.get("/coordination/duties", **{"class": "worker"})
        found[:] = [each["value"] for each in page["records"] if each["value"]["resource"] == "worker:maintenance"]
        return bool(found) and found[0]["epoch"] > 0

    await wait_until(is_claimed, what="a claim on maintenance", timeout_s=20)
    return found[0]


@pytest.mark.spec("S-178")
async def test_an_engine_has_maintenance_from_its_start_and_the_next_has_it_at_once(tmp_path: Path) -> None:
    """Its claim lasts three quarters of an hour: only one that was given back can be had again within seconds."""
    write_script(tmp_path, ECHO)
    node = {"node": {"id": "solo"}, "coordination": {"type": "embedded-kv"}}
    files = await write_engine_files(tmp_path, company(role("ceo"), llm={"script": scripted()}), node=node)

    async with running_engine(files) as engine:
        first = await maintenance(engine)
        health = await engine.api.get("/health")
        mailboxes = await engine.api.get("/coordination/mailboxes", **{"class": "seat"})
        code = await engine.drained()
    async with running_engine(files) as engine:
        second = await maintenance(engine)

    assert code == 0
    assert health["problems"] == []
    assert [record["value"]["handle"] for record in mailboxes["records"]] == ["ceo"]
    assert (first["preferred"], second["preferred"]) == ("solo", "solo")
    assert first["owner"] != second["owner"]
    assert second["epoch"] == first["epoch"] + 1
    assert not second["after_lapse"]
