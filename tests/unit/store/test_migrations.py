"""The schema's steps: each taken once, all of them or none, and never backwards."""

from __future__ import annotations

import hashlib
from pathlib import Path

import apsw
import pytest

from crewlet.base.errors import StartRefused
from crewlet.store import Connection, Database
from crewlet.store.migrations import MIGRATIONS

_FIRST = "CREATE TABLE a (x INTEGER)"
_SECOND = "INSERT INTO a VALUES (1); CREATE TABLE b (x INTEGER)"


def _tables(connection: Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]


async def test_a_new_file_takes_every_step(path: Path) -> None:
    async with Database(path, migrations=[_FIRST, _SECOND]) as database:
        assert await database.read(_tables) == ["a", "b"]


async def test_a_file_takes_only_the_steps_that_it_lacks(path: Path) -> None:
    async with Database(path, migrations=[_FIRST]):
        pass

    for _ in range(2):
        async with Database(path, migrations=[_FIRST, _SECOND]) as database:
            rows = await database.read(lambda connection: connection.execute("SELECT x FROM a").fetchall())

            assert rows == [(1,)]


async def test_a_step_that_fails_takes_the_ones_before_it_back(path: Path) -> None:
    with pytest.raises(apsw.SQLError):
        await Database(path, migrations=[_FIRST, _SECOND, "CREATE NONSENSE"]).open()

    async with Database(path, migrations=[_FIRST]) as database:
        assert await database.read(_tables) == ["a"]


async def test_a_file_of_a_newer_release_is_refused_with_a_remedy(path: Path) -> None:
    async with Database(path, migrations=[_FIRST, _SECOND]):
        pass

    with pytest.raises(StartRefused, match="schema 2, this release knows 1") as refused:
        await Database(path, migrations=[_FIRST]).open()

    assert "newer release" in refused.value.remedy


async def test_a_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (x)")  # pyright: ignore[reportUnknownMemberType]
    other.close()

    with pytest.raises(StartRefused, match="another program"):
        await Database(path).open()


def test_a_released_step_never_changes() -> None:
    """Files in the field have taken these steps: a new schema is a further step with a further digest."""
    digests = [hashlib.sha256(step.encode()).hexdigest()[:16] for step in MIGRATIONS]

    assert digests == ["97c50fba06fac705", "3862a10a7a5a1546", "8dd4fe209b9d718e"]
