"""What happened in a run, a line each, and a digest by which two runs are told to be the same."""

from __future__ import annotations

import asyncio
import hashlib

__all__ = ["Trace"]


class Trace:
    """The lines of one run, in order, each with the virtual second in which it happened."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, what: str) -> None:
        """Write down what happens now."""
        self.lines.append(f"{asyncio.get_running_loop().time():10.3f}  {what}")

    @property
    def digest(self) -> str:
        """The same for two runs in which the same things happened at the same seconds."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()
