"""Work for a database thread, and the way its outcome travels back to the event loop that asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crewlet.store.sql import Connection

__all__ = ["Job", "Outcome", "call_on", "tell"]


@dataclass(frozen=True, slots=True)
class Job:
    """What to run on a connection, who waits for it, and what to do once its place in the queue is free."""

    work: Callable[[Connection], Any]
    answer: asyncio.Future[Any]
    left: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: its result, or the error that its caller is to see."""

    job: Job
    result: Any = None
    error: Exception | None = None


def tell(loop: asyncio.AbstractEventLoop, outcomes: Sequence[Outcome]) -> bool:
    """Answer the callers of these jobs on their loop; false where that loop is closed and nobody is left to tell."""
    return call_on(loop, _settle, outcomes)


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> bool:
    """Run ``function`` on the loop from another thread; false where the loop is closed."""
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        return False
    return True


def _settle(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        outcome.job.left()
        answer = outcome.job.answer
        if answer.done():  # its caller was cancelled
            continue
        if outcome.error is None:
            answer.set_result(outcome.result)
        else:
            answer.set_exception(outcome.error)
