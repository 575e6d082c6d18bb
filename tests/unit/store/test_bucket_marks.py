"""What a node remembers of buckets, over its restarts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from crewlet.store import BucketMark, BucketMarks, Database

MADE = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


async def test_marks_outlive_the_process(tmp_path: Path) -> None:
    mark = BucketMark("crewlet_epochs", MADE, 7)
    async with Database(tmp_path / "node.db") as database:
        await BucketMarks(database).write([mark])

    async with Database(tmp_path / "node.db") as database:
        assert await BucketMarks(database).read() == {"crewlet_epochs": mark}


async def test_the_highest_revision_of_a_bucket_is_remembered(tmp_path: Path) -> None:
    async with Database(tmp_path / "node.db") as database:
        marks = BucketMarks(database)
        await marks.write([BucketMark("a", MADE, 9)])
        await marks.write([BucketMark("a", MADE, 4)])

        assert (await marks.read())["a"].last_revision == 9


async def test_a_bucket_that_was_made_anew_is_remembered_anew(tmp_path: Path) -> None:
    later = BucketMark("a", MADE + timedelta(days=1), 2)
    async with Database(tmp_path / "node.db") as database:
        marks = BucketMarks(database)
        await marks.write([BucketMark("a", MADE, 9)])
        await marks.write([later])

        assert await marks.read() == {"a": later}
