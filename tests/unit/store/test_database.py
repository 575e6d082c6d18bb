"""One owner, one writer, writes that are there once they are answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
import uvloop

from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.store import Connection, Database
from crewlet.testing import wait_until

_TABLE = ("CREATE TABLE notes (text TEXT PRIMARY KEY, size INTEGER)",)
_DEADLINE_S = 10.0


class Held:
    """A write that keeps the writer thread busy until it is let go, so that what follows queues up behind it."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self._go_on = threading.Event()

    def __call__(self, connection: Connection) -> None:
        self.running.set()
        assert self._go_on.wait(_DEADLINE_S)

    async def started(self) -> None:
        await wait_until(self.running.is_set)

    def let_go(self) -> None:
        self._go_on.set()


class JumpingClock:
    """Each look at it is a second later."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, tzinfo=UTC)

    def elapsed_s(self) -> float:
        self._looks += 1
        return float(self._looks)


def note(text: str) -> Callable[[Connection], str]:
    def write(connection: Connection) -> str:
        connection.execute("INSERT INTO notes (text) VALUES (?)", (text,))
        return text

    return write


def notes(connection: Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY rowid")]


async def queue_up(database: Database, *works: Callable[[Connection], object]) -> tuple[Held, list[asyncio.Task[Any]]]:
    """These writes, given to the writer while it is busy with the first task's; nothing runs until that is let go."""
    held = Held()
    tasks: list[asyncio.Task[Any]] = [asyncio.ensure_future(database.write(held))]
    await held.started()
    tasks += [asyncio.ensure_future(database.write(work)) for work in works]
    await asyncio.sleep(0)
    return held, tasks


def committed(path: Path) -> int:
    """How many notes another connection sees."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return len(notes(connection))  # pyright: ignore[reportArgumentType]
    finally:
        connection.close()


async def test_a_read_sees_every_answered_write(path: Path) -> None:
    async with Database(path, migrations=_TABLE) as database:
        for number in range(20):
            answer = await database.write(note(f"{number}"))

            assert answer == f"{number}"
            assert (await database.read(notes))[-1] == f"{number}"


async def test_a_failing_write_fails_only_its_caller_and_leaves_nothing(path: Path) -> None:
    def broken(connection: Connection) -> None:
        note("half")(connection)
        raise LookupError("no")

    async with Database(path, migrations=_TABLE) as database:
        held, tasks = await queue_up(database, note("a"), broken, note("a"), note("b"))
        held.let_go()

        _, *outcomes = await asyncio.gather(*tasks, return_exceptions=True)

        assert [type(each) for each in outcomes] == [str, LookupError, apsw.ConstraintError, str]
        assert await database.read(notes) == ["a", "b"]


async def test_writes_that_queue_up_are_committed_together(path: Path) -> None:
    async with Database(path, migrations=_TABLE) as database:
        held, tasks = await queue_up(database, *(note(f"{number}") for number in range(9)), lambda _: committed(path))
        held.let_go()

        *_, seen = await asyncio.gather(*tasks)

        assert seen == 0
        assert committed(path) == 9


async def test_a_group_that_has_taken_its_time_is_committed_before_more_is_taken(path: Path) -> None:
    async with Database(path, migrations=_TABLE, clock=JumpingClock()) as database:
        held, tasks = await queue_up(database, *(note(f"{number}") for number in range(9)), lambda _: committed(path))
        held.let_go()

        *_, seen = await asyncio.gather(*tasks)

        assert seen == 9


async def test_a_full_disk_is_unavailable_for_the_whole_group_and_passes(path: Path) -> None:
    def shrink(connection: Connection) -> None:
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').get}").fetchall()

    async with Database(path, migrations=_TABLE) as database:
        await database.write(shrink)
        held, tasks = await queue_up(database, note("a"), note("x" * 100_000), note("b"))
        held.let_go()

        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await database.write(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchall())
        await database.write(note("c"))

        assert {type(each) for each in outcomes[:3]} == {Unavailable}
        kept = await database.read(notes)
        assert [name for name in ("a", "b") if name in kept] == [o for o in outcomes if isinstance(o, str)]
        assert kept[-1] == "c"


async def test_a_full_queue_makes_the_caller_wait(path: Path) -> None:
    async with Database(path, migrations=_TABLE, writes_max=2) as database:
        held, (running, queued) = await queue_up(database, note("queued"))
        waiting = [asyncio.ensure_future(database.write(note(f"waiting {number}"))) for number in range(5)]
        given_up = asyncio.ensure_future(database.write(note("given up")))
        await asyncio.sleep(0)

        given_up.cancel()  # while it waits for a place: it was never given to the writer
        queued.cancel()  # in the queue already: it happens all the same
        await asyncio.sleep(0)
        held.let_go()
        await asyncio.gather(running, *waiting)

        assert sorted(await database.read(notes)) == ["queued", *(f"waiting {number}" for number in range(5))]


async def test_a_cancelled_write_frees_its_place(path: Path) -> None:
    async with Database(path, migrations=_TABLE, writes_max=1) as database:
        for number in range(5):
            write = asyncio.ensure_future(database.write(note(f"{number}")))
            await asyncio.sleep(0)
            write.cancel()
            with suppress(asyncio.CancelledError):
                await write

        assert await asyncio.wait_for(database.write(note("last")), _DEADLINE_S) == "last"
        assert (await database.read(notes))[-1] == "last"


async def test_closing_commits_what_is_queued(path: Path) -> None:
    database = Database(path, migrations=_TABLE)
    await database.open()
    writes = [asyncio.ensure_future(database.write(note(f"{number}"))) for number in range(100)]
    await asyncio.sleep(0)

    await database.close()

    assert [await write for write in writes] == [f"{number}" for number in range(100)]
    assert committed(path) == 100


async def test_a_closed_database_is_unavailable(path: Path) -> None:
    database = Database(path, migrations=_TABLE)
    with pytest.raises(Unavailable):
        await database.read(notes)
    await database.open()
    await database.close()
    await database.close()

    with pytest.raises(Unavailable):
        await database.write(note("late"))
    with pytest.raises(Unavailable):
        await database.read(notes)


async def test_a_reader_cannot_write(path: Path) -> None:
    async with Database(path, migrations=_TABLE) as database:
        with pytest.raises(Unavailable):
            await database.read(note("a"))

        assert await database.read(notes) == []


@pytest.mark.slow
async def test_a_read_that_never_ends_is_cut_off_and_its_thread_serves_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STORE_READ_TIMEOUT_S", 0.05)

    def endless(connection: Connection) -> object:
        query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        return connection.execute(query).get

    async with Database(path, migrations=_TABLE) as database:
        reads = [database.read(endless) for _ in range(2 * limits.STORE_READERS)]
        outcomes = await asyncio.gather(*reads, return_exceptions=True)

        assert {type(each) for each in outcomes} == {Unavailable}
        assert await database.read(notes) == []


async def test_a_read_is_one_snapshot(path: Path) -> None:
    async with Database(path, migrations=_TABLE) as database:
        await database.write(note("before"))
        held = Held()

        def twice(connection: Connection) -> tuple[list[str], list[str]]:
            first = notes(connection)
            held(connection)
            return first, notes(connection)

        reading = asyncio.ensure_future(database.read(twice))
        await held.started()
        await database.write(note("after"))
        held.let_go()

        assert await reading == (["before"], ["before"])
        assert await database.read(notes) == ["before", "after"]


async def test_the_file_is_for_its_owner_s_eyes_only(path: Path, database: Database) -> None:
    await database.write(lambda connection: connection.execute("SELECT 1").get)

    files = list(path.parent.iterdir())

    assert {file.name for file in files} == {"node.db", "node.db.lock", "node.db-wal", "node.db-shm"}
    assert {file.stat().st_mode & 0o077 for file in files} == {0}


async def test_an_answered_write_is_synced_to_the_disk(database: Database) -> None:
    mode = await database.write(lambda connection: connection.execute("PRAGMA journal_mode").get)
    synchronous = await database.write(lambda connection: connection.execute("PRAGMA synchronous").get)

    assert (mode, synchronous) == ("wal", 2)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.slow
def test_a_loop_that_is_closed_with_writes_under_way_lets_the_file_go(
    path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    held = Held()

    async def abandon() -> None:
        database = Database(path, migrations=_TABLE)
        await database.open()
        asyncio.ensure_future(database.write(held))  # noqa: RUF006 - abandoned on purpose
        await held.started()
        asyncio.ensure_future(database.write(note("queued")))  # noqa: RUF006 - as above
        await asyncio.sleep(0)

    async def open_when_free() -> list[str]:
        async with asyncio.timeout(_DEADLINE_S):
            while True:
                database = Database(path, migrations=_TABLE)
                try:
                    await database.open()
                except StartRefused:
                    await asyncio.sleep(0.01)
                    continue
                try:
                    return await database.read(notes)
                finally:
                    await database.close()

    with asyncio.Runner(loop_factory=new_loop) as first:
        first.run(abandon())
    held.let_go()

    with asyncio.Runner(loop_factory=new_loop) as second:
        assert second.run(open_when_free()) == ["queued"]


def test_writes_and_reads_work_on_uvloop(path: Path) -> None:
    async def use() -> list[str]:
        async with Database(path, migrations=_TABLE) as database:
            await asyncio.gather(*(database.write(note(f"{number}")) for number in range(50)))
            return await database.read(notes)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(use()) == [f"{number}" for number in range(50)]
