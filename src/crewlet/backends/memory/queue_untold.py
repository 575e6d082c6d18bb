"""The twin's dead letters that no handler knows of: they wait at the broker until a client that listens has told them.

The real broker offers a message again whose burial was not told to its end; here the letter itself is offered again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from crewlet.backends.memory.queue_line import Line
from crewlet.base import limits
from crewlet.base.tasks import Tasks
from crewlet.queue import UnheardLetter, UnheardListener, UnheardListeners

__all__ = ["Teller", "Untold"]


@dataclass(slots=True, eq=False)
class _Waiting:
    letter: UnheardLetter
    teller: Teller | None = None


class Untold:
    """Those of one broker; of too many the oldest go."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._tellers: list[Teller] = []

    def add(self, letter: UnheardLetter) -> None:
        """One more, for whoever listens first."""
        self._waiting = [*self._waiting[1 - limits.UNHEARD_LETTERS_MAX :], _Waiting(letter)]
        self.offer()

    def join(self, teller: Teller) -> None:
        """``teller`` may be offered letters."""
        self._tellers.append(teller)

    def leave(self, teller: Teller) -> None:
        """What it has not told to its end is another's."""
        if teller in self._tellers:
            self._tellers.remove(teller)
        for waiting in self._waiting:
            if waiting.teller is teller:
                waiting.teller = None
        self.offer()

    def told(self, letter: UnheardLetter) -> None:
        """It needs nobody any more."""
        self._waiting = [each for each in self._waiting if each.letter is not letter]

    def offer(self) -> None:
        """Give each that waits to whoever takes it."""
        for waiting in [*self._waiting]:
            if waiting.teller is None:
                waiting.teller = next((each for each in [*self._tellers] if each.take(waiting.letter)), None)


class Teller:
    """One client's part: it takes letters while somebody listens to it and its line is up."""

    def __init__(self, untold: Untold, line: Line, tasks: Tasks) -> None:
        self._listeners = UnheardListeners()
        self._untold = untold
        self._line = line
        self._tasks = tasks
        self._taken: deque[UnheardLetter] = deque()
        self._news = asyncio.Event()
        self._is_telling = False
        untold.join(self)

    def add(self, listener: UnheardListener) -> Callable[[], None]:
        """Tell ``listener`` from now on, also of what waited for one; returns what removes it."""
        remove = self._listeners.add(listener)
        if not self._is_telling:
            # Begun by the client itself: whoever buries a letter may be another process, which ends.
            self._is_telling = True
            self._tasks.start("tell_unheard", self._tell())
        self._untold.offer()
        return remove

    def take(self, letter: UnheardLetter) -> bool:
        """Whether this client tells it."""
        if not self._listeners or not self._line.is_up:
            return False
        self._taken.append(letter)
        self._news.set()
        return True

    async def _tell(self) -> None:
        while True:
            while self._taken:
                letter = self._taken[0]
                await self._listeners.tell(letter)
                self._taken.popleft()
                self._untold.told(letter)
            self._news.clear()
            await self._news.wait()
