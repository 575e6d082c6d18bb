"""Whether the disk under a folder has room."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

__all__ = ["has_room"]


async def has_room(folder: Path | None, *, at_least_bytes: int) -> bool:
    """Whether so much is free there; a disk that does not say, or no folder, has none."""
    if folder is None:
        return False
    try:
        usage = await asyncio.to_thread(shutil.disk_usage, folder)
    except OSError:
        return False
    return usage.free >= at_least_bytes
