"""How many turns a node runs at once: whoever finds no slot waits in this process, and burns no delivery (S2)."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["TurnSlots"]


class TurnSlots:
    """Slots, handed out in the order in which they were asked for, until closed."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._closed = False

    async def take(self) -> bool:
        """Whether a slot was got, once one is free; false where the node has begun to drain meanwhile, or before."""
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
                self.give_back()
            raise

    def give_back(self) -> None:
        """The turn of a slot has ended; whoever waits longest gets it."""
        while self._waiting:
            next_one = self._waiting.popleft()
            if not next_one.done():
                next_one.set_result(True)
                return
        self._free += 1

    def close(self) -> None:
        """Hand out no slot any more: whoever waits is told so, and gives its delivery back."""
        self._closed = True
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(False)
