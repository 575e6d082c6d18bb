"""The one place where a real-time test polls: it waits for a condition, never for an amount of time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

__all__ = ["wait_until"]

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05


async def wait_until(
    holds: Callable[[], bool | Awaitable[bool]],
    *,
    what: str = "the condition",
    timeout_s: float = 10.0,
) -> None:
    """Return once ``holds()`` is true; it may be a plain or an async function.

    Raises ``TimeoutError`` naming ``what`` after ``timeout_s``, also when an async ``holds`` itself does not return.
    """
    try:
        async with asyncio.timeout(timeout_s):
            await _poll(holds)
    except TimeoutError as late:
        message = f"{what} did not hold within {timeout_s} s"
        raise TimeoutError(message) from late


async def _poll(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    pause_s = _FIRST_PAUSE_S
    while True:
        answer = holds()
        if await answer if inspect.isawaitable(answer) else answer:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
