from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.store import Database, EventLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "node.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    async with Database(path) as opened:
        yield opened


@pytest.fixture
def log(database: Database) -> EventLog:
    return EventLog(database)
