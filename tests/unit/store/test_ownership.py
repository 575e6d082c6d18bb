"""One process owns the file: another is refused, a killed one stands in nobody's way and loses no answered row."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from crewlet.base.errors import StartRefused
from crewlet.store import Database, EventLog

_WRITER = """
import asyncio, sys
from datetime import UTC, datetime
from crewlet.base.ids import RandomIds
from crewlet.base.trace import fresh_trace
from crewlet.events import new_event
from crewlet.events.types import OrgStarted
from crewlet.store import Database, EventLog

async def main():
    ids = RandomIds()
    async with Database(sys.argv[1]) as database:
        log = EventLog(database)
        async def write():
            while True:
                event = new_event(OrgStarted(company="Acme"), trace=fresh_trace(ids), now=datetime.now(UTC), ids=ids)
                await log.record("crewlet.events.org_started", event)
                print(event.id, flush=True)
        await asyncio.gather(*(write() for _ in range(8)))

asyncio.run(main())
"""


@contextmanager
def _writer(path: Path) -> Generator[tuple[int, IO[str]]]:
    """Pid and output of a process that records events and prints each id once it is recorded; killed at the end."""
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout
        finally:
            process.kill()


def _said_before_killed(path: Path, lines: int) -> list[str]:
    """Kill it after so many lines; the ids that it said, those included that were still in the pipe when it died."""
    with _writer(path) as (number, words):
        said = [words.readline() for _ in range(lines)]
        os.kill(number, signal.SIGKILL)
        said += words.readlines()
    return [line.strip() for line in said if line.endswith("\n")]


@pytest.mark.slow
@pytest.mark.spec("C-002")
async def test_a_second_process_is_refused_with_path_and_holder(path: Path) -> None:
    with _writer(path) as (number, words):
        await asyncio.to_thread(words.readline)

        with pytest.raises(StartRefused) as refused:
            await Database(path).open()

    assert str(path) in refused.value.problem
    assert f"pid {number}" in refused.value.problem
    assert refused.value.remedy
    async with Database(path):
        pass


@pytest.mark.spec("C-002")
async def test_a_second_opening_in_the_same_process_is_refused(path: Path, database: Database) -> None:
    with pytest.raises(StartRefused, match=f"pid {os.getpid()}"):
        await Database(path).open()

    await database.close()
    async with Database(path):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 7, 40, 300, 1000])
async def test_a_killed_process_loses_no_row_that_it_was_answered_for(path: Path, lines: int) -> None:
    recorded: list[str] = []
    for _ in range(3):
        recorded += await asyncio.to_thread(_said_before_killed, path, lines)

    async with Database(path) as database:
        log = EventLog(database)
        missing = [number for number in recorded if await log.event(number) is None]
        problems = await database.read(lambda connection: connection.execute("PRAGMA integrity_check").get)

    assert len(recorded) >= 3 * lines
    assert missing == []
    assert problems == "ok"


@pytest.mark.parametrize("place", ["under_a_file", "read_only_system"])
async def test_a_place_that_cannot_be_written_is_refused_by_name(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "node.db" if place == "under_a_file" else Path("/proc/crewlet/node.db")

    with pytest.raises(StartRefused) as refused:
        await Database(path).open()

    assert str(path) in refused.value.problem
    assert refused.value.remedy


async def test_a_directory_in_the_file_s_place_is_refused_by_name(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(StartRefused, match=str(path)):
        await Database(path).open()


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("a letter to my aunt, longer than the hundred bytes of a header, " * 5)
    before = path.read_bytes()

    with pytest.raises(StartRefused, match=str(path)):
        await Database(path).open()

    assert path.read_bytes() == before


async def test_a_scratch_database_is_a_new_one_at_every_start_and_only_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "scratch.db"
    async with Database(path, scratch=True) as database:
        await database.write(lambda connection: connection.execute("CREATE TABLE kept (x)"))
        with pytest.raises(StartRefused):
            await Database(path, scratch=True).open()
        await database.write(lambda connection: connection.execute("INSERT INTO kept VALUES (1)"))
    async with Database(path, scratch=True) as database:
        tables = await database.read(
            lambda connection: connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'kept'").fetchall()
        )

    assert tables == [(0,)]
