"""Whether a cancellation is meant for whoever is running, or for something that it waited for."""

from __future__ import annotations

import asyncio

__all__ = ["is_asked_to_end"]


def is_asked_to_end() -> bool:
    """Whether the current task was cancelled itself: then it must end, and else it has met somebody else's end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
