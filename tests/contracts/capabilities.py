"""Skips a promise where its backend declared that it lacks what the promise needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from crewlet.testing.contracts import Capability, needed

__all__ = ["skip_where_absent"]


def skip_where_absent(absent: frozenset[Capability], request: pytest.FixtureRequest) -> None:
    """End the test that asks as skipped, naming the capability."""
    promise = cast("Callable[..., Any]", request.function)
    capability = needed(promise)
    if capability in absent:
        pytest.skip(f"declared absent: {capability.value}")
