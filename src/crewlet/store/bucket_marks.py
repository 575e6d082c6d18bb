"""What this node remembers of each bucket of the coordination store, so that one that came back empty is noticed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from crewlet.store.database import Database
from crewlet.store.sql import Connection

__all__ = ["BucketMark", "BucketMarks"]


@dataclass(frozen=True, slots=True)
class BucketMark:
    """That a bucket, made at ``created_at`` (the broker's time), has once been at ``last_revision``."""

    bucket: str
    created_at: datetime
    last_revision: int


class BucketMarks:
    """The marks in the node's own database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> dict[str, BucketMark]:
        """Every mark, by bucket. Raises ``Unavailable``."""
        return await self._database.read(_marks)

    async def write(self, marks: Iterable[BucketMark]) -> None:
        """Remember these; of one and the same bucket, the highest revision ever seen. Raises ``Unavailable``."""
        rows = [(mark.bucket, mark.created_at.isoformat(), mark.last_revision) for mark in marks]

        def work(connection: Connection) -> None:
            for row in rows:
                connection.execute(
                    "INSERT INTO crewlet_bucket_marks VALUES (?, ?, ?) ON CONFLICT (bucket) DO UPDATE SET"
                    " created_at = excluded.created_at, last_revision = CASE WHEN created_at = excluded.created_at"
                    " THEN max(last_revision, excluded.last_revision) ELSE excluded.last_revision END",
                    row,
                )

        await self._database.write(work)


def _marks(connection: Connection) -> dict[str, BucketMark]:
    rows = connection.execute("SELECT bucket, created_at, last_revision FROM crewlet_bucket_marks").fetchall()
    marks = [
        BucketMark(cast("str", name), datetime.fromisoformat(cast("str", created_at)), cast("int", last_revision))
        for name, created_at, last_revision in rows
    ]
    return {mark.bucket: mark for mark in marks}
