"""Hears what simulated processes say in their logs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from crewlet.testing.simulated.process import SimulatedProcess, current_process

__all__ = ["heard_by"]


@contextmanager
def heard_by(hear: Callable[[SimulatedProcess | None, str, MutableMapping[str, Any]], None]) -> Generator[None]:
    """Warnings and worse go to ``hear`` and nowhere else while this lasts: who said it, its name, its fields."""

    def take(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if line.get("exc_info") is True:
            line["exc_info"] = repr(sys.exception())
        name = str(line.pop("event"))
        hear(current_process(), name, line)
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[take],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
