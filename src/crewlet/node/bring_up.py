"""Steps of a boot that a broker busy with others, or with itself, may leave without an answer: tried for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.config import StreamConfig

__all__ = ["bring_up_s", "brought_up"]

_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


def bring_up_s(stream: StreamConfig) -> float:
    """How long a step may be tried: streams and buckets elect leaders first where members share them.

    A broker that is dialled may be busy with the boots of the nodes beside this one.
    """
    shared = stream.cluster is not None or stream.replicas > 1 or stream.satellite is not None
    if shared:
        return limits.BRING_UP_CLUSTERED_S
    return limits.BRING_UP_DIALLED_S if stream.type == "nats" else 0.0


async def brought_up(what: str, step: Callable[[], Awaitable[_T]], *, within_s: float) -> _T:
    """What ``step`` returns; it must be harmless when done twice. Raises ``Unavailable`` as the last try does."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + within_s
    while True:
        try:
            return await step()
        except Unavailable as error:
            if clock() >= deadline:
                raise
            _log.warning("bring_up_retried", step=what, error=str(error))
        await asyncio.sleep(limits.BRING_UP_PAUSE_S)
