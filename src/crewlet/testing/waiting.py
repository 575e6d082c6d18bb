"""The one place where a real-time test polls: it waits for a condition, never for an amount of time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["BUSY_TIMES", "wait_until"]

BUSY_TIMES: Final = 4
"""How much slower than a quiet machine one may be that runs other tests, or other people's work, at the same time."""
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05


async def wait_until(
    holds: Callable[[], bool | Awaitable[bool]],
    *,
    what: str = "the condition",
    timeout_s: float = 10.0,
    exactly: bool = False,
) -> None:
    """Return once ``holds()`` is true; it may be a plain or an async function.

    Raises ``TimeoutError`` naming ``what``, also when an async ``holds`` itself does not return. ``timeout_s`` is what
    would be long on a quiet machine: a deadline ends a test that hangs, so a busy one is given several times that, but
    for a promise about time itself (``exactly``).
    """
    given_s = timeout_s if exactly else BUSY_TIMES * timeout_s
    try:
        async with asyncio.timeout(given_s):
            await _poll(holds)
    except TimeoutError as late:
        message = f"{what} did not hold within {given_s:g} s"
        raise TimeoutError(message) from late


async def _poll(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    pause_s = _FIRST_PAUSE_S
    while True:
        answer = holds()
        if await answer if inspect.isawaitable(answer) else answer:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
