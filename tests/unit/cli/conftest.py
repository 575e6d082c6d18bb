"""Runs commands as `crewlet` would, in a folder of their own, without what the developer's environment holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREWLET_API_TOKEN", raising=False)
    monkeypatch.delenv("CREWLET_TRACEBACK", raising=False)
    before = structlog.get_config()
    yield
    structlog.configure(**before)
