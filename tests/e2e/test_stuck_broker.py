"""A broker that answers and stores nothing: what a disk that was full once leaves behind."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import httpx
import pytest

from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are set on Linux alone"),
]


def let_no_file_grow(engine: Engine) -> None:
    resource.prlimit(engine.broker().pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))


async def test_a_broker_that_stores_nothing_is_told_of_and_revived(tmp_path: Path) -> None:
    """Its streams would take nothing until somebody started it again, with health and readiness green all along."""
    write_script(tmp_path, ECHO)
    files = await write_engine_files(tmp_path, company(role("ceo"), llm={"script": scripted()}))

    async with running_engine(files) as engine:
        before = engine.broker()
        let_no_file_grow(engine)
        with pytest.raises(httpx.HTTPStatusError) as refused:
            await engine.api.send("ceo", "Does anybody hear me?")
        await engine.says("broker_takes_no_writes")
        await engine.says("broker_restarted")
        await wait_until(engine.api.is_ready, what="readiness")
        answer = await engine.api.final_message(await engine.api.send("ceo", "And now?"), timeout_s=40)
        after = engine.broker()

    assert refused.value.response.json()["outcome"] == "unknown"
    assert answer["answer"] == "You said: And now?"
    assert before != after
