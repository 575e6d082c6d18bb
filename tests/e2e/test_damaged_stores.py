"""Files of the data directory that a failing disk has left damaged: one clear sentence, or a node that works."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def worked_before(directory: Path) -> EngineFiles:
    """The files of an engine that has answered a message and ended."""
    write_script(directory, ECHO)
    files = await write_engine_files(directory, company(role("ceo"), llm={"script": scripted()}))
    async with running_engine(files) as engine:
        await engine.api.final_message(await engine.api.send("ceo", "Before"))
        await engine.drained()
    return files


def mailbox_states(files: EngineFiles) -> list[Path]:
    return [*files.data_dir.rglob("obs/*/o.dat")]


def no_database(files: EngineFiles) -> None:
    files.database.write_bytes(b"this is no database" * 1000)


def newer_database(files: EngineFiles) -> None:
    with closing(sqlite3.connect(files.database)) as database:
        database.execute("PRAGMA user_version = 99")
        database.commit()


def folder_for_token(files: EngineFiles) -> None:
    files.token_file.unlink()
    files.token_file.mkdir()


def damaged_mailboxes(files: EngineFiles) -> None:
    for each in mailbox_states(files):
        each.write_bytes(b"\x00\x01\x02")


def emptied_streams(files: EngineFiles) -> None:
    shutil.rmtree(files.data_dir / "stream")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (emptied_streams, "give the broker its own store back"),
        (no_database, "store.path must name a database"),
        (newer_database, "start the newer release again"),
        (folder_for_token, "delete it, or set `api.auth.tokens`"),
        (damaged_mailboxes, "stop it and remove …/obs/"),
    ],
)
async def test_what_cannot_be_used_is_told_with_what_to_do(
    tmp_path: Path, damage: Callable[[EngineFiles], None], says: str
) -> None:
    files = await worked_before(tmp_path)
    damage(files)
    engine = Engine(files)
    try:
        await engine.start()
        code = await engine.ended(timeout_s=20)
        await engine.gone()
    finally:
        await engine.close()

    assert code == 1
    assert says in engine.err
    assert "Traceback" not in engine.err


async def test_the_remedy_for_a_damaged_mailbox_helps(tmp_path: Path) -> None:
    files = await worked_before(tmp_path)
    damaged_mailboxes(files)
    for each in mailbox_states(files):
        shutil.rmtree(each.parent)

    async with running_engine(files) as engine:
        answer = await engine.api.final_message(await engine.api.send("ceo", "After"))

    assert answer["answer"] == "You said: After"


async def test_messages_cut_off_at_the_end_of_their_files_cost_the_node_nothing_else(tmp_path: Path) -> None:
    files = await worked_before(tmp_path)
    for each in files.data_dir.rglob("*.blk"):
        content = each.read_bytes()
        each.write_bytes(content[: max(0, len(content) - 7)])

    async with running_engine(files) as engine:
        answer = await engine.api.final_message(await engine.api.send("ceo", "After"))

    assert answer["answer"] == "You said: After"
