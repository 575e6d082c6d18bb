"""A client's line to the twin's broker: up, cut, or ended with its process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from crewlet.base.errors import Unavailable

__all__ = ["Line"]


class Line:
    """Whether the client hears its broker, and the broker its client."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.is_up = True
        self.ended = False
        self._dropped: list[Callable[[], None]] = []
        self._settled = asyncio.Event()
        self._settled.set()

    def cut(self) -> None:
        """Nothing gets through."""
        self.is_up = False
        if not self.ended:
            self._settled.clear()
        self._tell_dropped()

    def heal(self) -> None:
        """It gets through again, unless the line has ended."""
        self.is_up = not self.ended
        self._settled.set()

    def end(self) -> None:
        """Nothing will get through ever again."""
        self.is_up = False
        self.ended = True
        self._settled.set()
        self._tell_dropped()

    @contextmanager
    def dropping(self, tell: Callable[[], None]) -> Generator[None]:
        """``tell`` is called when the line goes down while the block runs."""
        self._dropped.append(tell)
        try:
            yield
        finally:
            self._dropped.remove(tell)

    async def reach(self) -> None:
        """The broker can be asked now; others have had their turn, as over a network. Raises ``Unavailable``."""
        await asyncio.sleep(0)
        self.check()

    def check(self) -> None:
        """The broker can be told something now. Raises ``Unavailable``."""
        if not self.is_up:
            raise Unavailable(f"{self.node}: {'closed' if self.ended else 'cut off'}")

    async def healed(self, timeout_s: float) -> bool:
        """Whether it is up within ``timeout_s``; at once where it has ended."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            return False
        return self.is_up

    def _tell_dropped(self) -> None:
        for tell in [*self._dropped]:
            tell()
