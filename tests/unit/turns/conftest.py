"""Keeps the logs of the turn tests in memory: a fault's stack, printed in colours, takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_in_memory() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield
