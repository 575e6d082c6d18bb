"""How many turns a node runs at once: whoever is one too many waits in this process, and burns no delivery (S2)."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["TurnGate"]


class TurnGate:
    """Lets turns in, in the order in which they asked, until it is closed."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._closed = False

    async def enter(self) -> bool:
        """Whether a turn may run, once there is room; false where the node has begun to drain meanwhile, or before."""
        if self._closed:
            return False
        if self._free:
            self._free -= 1
            return True
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.result():
                self.leave()
            raise

    def leave(self) -> None:
        """A turn that was let in has ended; whoever waits longest is next."""
        while self._waiting:
            next_one = self._waiting.popleft()
            if not next_one.done():
                next_one.set_result(True)
                return
        self._free += 1

    def close(self) -> None:
        """Let nobody in any more: whoever waits is told so, and gives its delivery back."""
        self._closed = True
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(False)
