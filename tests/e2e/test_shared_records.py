"""Where the shared records of a node that is alone are, what of them outlives it, and whose retention it lives by."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]


async def echo_files(directory: Path, **sections: object) -> EngineFiles:
    write_script(directory, ECHO)
    return await write_engine_files(directory, company(role("ceo"), llm={"script": scripted()}), node=sections)


async def keys(engine: Engine, slot: str, kind: str) -> list[str]:
    found = await engine.api.get(f"/coordination/{slot}", **{"class": kind})
    return [record["key"] for record in found["records"]]


async def worked(engine: Engine) -> None:
    message = await engine.api.final_message(await engine.api.send("ceo", "Hello"))
    assert message["answer"] == "You said: Hello"


@pytest.mark.spec("C-209", "C-210", "S-211", "S-216")
async def test_a_node_that_is_alone_keeps_its_leases_to_itself_and_every_other_record_over_a_restart(
    tmp_path: Path,
) -> None:
    files = await echo_files(tmp_path, coordination={"type": "local"})
    async with running_engine(files) as first:
        await worked(first)
        done = await keys(first, "ledger", "ceo")
        held = [await keys(first, slot, kind) for slot in ("leases", "epochs") for kind in ("seat", "node")]
        seats = (await first.api.get("/health"))["seats"]
        await first.kill()

    async with running_engine(files) as second:
        assert (len(done), held, seats) == (1, [[]] * 4, ["ceo"])
        assert await keys(second, "ledger", "ceo") == done
        assert await keys(second, "mailboxes", "seat") == ["seat.ceo"]


@pytest.mark.spec("C-211")
async def test_records_in_memory_are_gone_with_the_process(tmp_path: Path) -> None:
    files = await echo_files(tmp_path, stream={"store_dir": ""})
    async with running_engine(files) as first:
        await worked(first)
        done = await keys(first, "ledger", "ceo")
        await first.drained()

    async with running_engine(files) as second:
        assert len(done) == 1
        assert await keys(second, "ledger", "ceo") == []


@pytest.mark.spec("C-112", "C-206", "S-005")
async def test_a_node_lives_by_the_lease_ttl_that_its_bucket_has(tmp_path: Path) -> None:
    """Leases are in the shared bucket, under the TTL with which it was made, whatever the file says now."""
    files = await echo_files(tmp_path, coordination={"type": "embedded-kv", "lease_ttl_seconds": 21})
    async with running_engine(files) as first:
        await first.drained()
    await echo_again(files)

    async with running_engine(files) as second:
        slots = {slot["name"]: slot["age_s"] for slot in (await second.api.get("/coordination"))["slots"]}
        leases = [await second.api.get(f"/coordination/leases/{name}") for name in ("seat:ceo", "node:node-0")]

        assert (slots["leases"], slots["epochs"]) == (21, None)
        assert [lease["value"]["ttl_s"] for lease in leases] == [21, 21]
        assert "coord_kv_lease_ttl_differs" in second.err
        assert "in_force_s=21" in second.err


async def echo_again(files: EngineFiles) -> None:
    """The file asks for more than the bucket keeps."""
    text = files.node_file.read_text(encoding="utf-8")
    files.node_file.write_text(text.replace("21", "60"), encoding="utf-8")


@pytest.mark.spec("C-207")
async def test_leases_and_records_go_over_the_one_connection_that_mail_goes_over(tmp_path: Path) -> None:
    files = await echo_files(tmp_path, coordination={"type": "embedded-kv"})
    async with running_engine(files) as engine:
        await worked(engine)
        broker = psutil.Process(engine.broker().pid)
        clients = [each for each in broker.net_connections("tcp") if each.status == "ESTABLISHED"]

        assert len(clients) == 1


@pytest.mark.spec("C-217")
async def test_no_second_engine_opens_the_directory_of_a_broker_that_runs(tmp_path: Path) -> None:
    files = await echo_files(tmp_path, coordination={"type": "embedded-kv"})
    async with running_engine(files) as engine:
        other = await echo_files(
            tmp_path / "other", stream={"type": "embedded", "store_dir": str(files.data_dir / "stream")}
        )
        second = Engine(other)
        try:
            await second.start()
            code = await second.ended()
        finally:
            await second.close()

        assert code != 0
        assert str(files.data_dir / "stream") in second.err
        await worked(engine)


@pytest.mark.spec("C-001")
async def test_a_node_keeps_nothing_but_its_database_its_streams_and_its_token(tmp_path: Path) -> None:
    files = await echo_files(tmp_path)
    given = {path.name for path in tmp_path.iterdir()}
    async with running_engine(files) as engine:
        await worked(engine)
        await engine.drained()

    kept = {path.name.removesuffix("-wal").removesuffix("-shm") for path in files.data_dir.iterdir()}
    assert kept == {"crewlet.db", "crewlet.db.lock", "operator-token", "stream"}
    assert {path.name for path in tmp_path.iterdir()} == given | {".crewlet"}
