"""What the slots' suites do to learn what becomes of a call that nobody heard the answer of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

import pytest

from crewlet.base.errors import Unavailable

__all__ = ["goes_unheard"]

_PATIENCE_S: Final = 1.0


async def goes_unheard(call: Awaitable[object]) -> None:
    """The call ends without an answer: unavailable, or its caller waits no longer."""
    with pytest.raises((Unavailable, TimeoutError)):
        async with asyncio.timeout(_PATIENCE_S):
            await call
