"""What lies between one client and the twin's bucket: whole, unless somebody spoils it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeVar, cast

from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable

__all__ = ["MemoryLink"]

_T = TypeVar("_T")

_READ_BACK_AFTER_S = 0.05


class MemoryLink:
    """One client's link."""

    def __init__(self, *, watch_delay_s: float = 0.0) -> None:
        self.watch_delay_s = watch_delay_s
        """How much later than its write a change arrives at this client's watches."""

        self.silent = False
        """Nothing is answered any more, and nobody says so: a question waits out its whole time."""

        self._cut = False
        self.next_write: Literal["arrives", "lost reply", "cut after", "withheld"] = "arrives"
        """What becomes of the client's next write; the one behind it arrives."""

        self._withheld: list[Callable[[], object]] = []
        self._on_cut: list[Callable[[], None]] = []

    @property
    def cut(self) -> bool:
        """Whether the client reaches nothing, and knows it."""
        return self._cut

    @cut.setter
    def cut(self, cut: bool) -> None:
        self._cut = cut
        if cut:
            for call in [*self._on_cut]:
                call()

    def on_cut(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` each time the link is cut; returns what ends that."""
        self._on_cut.append(call)
        return lambda: self._on_cut.remove(call)

    def lose_reply(self) -> None:
        """The next write lands and its answer is lost; what it did can be read back."""
        self.next_write = "lost reply"

    def cut_after_write(self) -> None:
        """The next write lands and the link is cut before its answer comes back."""
        self.next_write = "cut after"

    def withhold(self) -> None:
        """The next write does not arrive before :meth:`deliver`."""
        self.next_write = "withheld"

    def deliver(self) -> None:
        """What was withheld arrives; nobody hears what came of it."""
        late, self._withheld = self._withheld, []
        for write in late:
            _tried(write)

    async def pass_over(self, slot: str) -> None:
        """One way over the link. Raises ``Unavailable``."""
        # Others get their turn between a caller's read and its write, as they would over a network.
        await asyncio.sleep(0)
        if self.silent:
            await asyncio.sleep(limits.BROKER_REQUEST_TIMEOUT_S)
            raise Unavailable(f"{slot}: no answer within {limits.BROKER_REQUEST_TIMEOUT_S:g} s")
        if self._cut:
            raise Unavailable(f"{slot}: cut off")

    async def write(self, slot: str, write: Callable[[], _T], *, landed: Callable[[_T | None], bool]) -> _T:
        """Carry one write over. Raises what it raises, and ``Unavailable`` where nobody learns what came of it.

        ``landed`` reads back whether what was to be done stands, given what the write returned; ``None`` where it was
        refused or did not arrive.
        """
        await self.pass_over(slot)
        fate, self.next_write = self.next_write, "arrives"
        if fate == "arrives":
            done = write()
            await asyncio.sleep(0)
            return done
        if fate == "withheld":
            self._withheld.append(write)
            unheard = None
        else:
            unheard = _tried(write)
        self.cut = self._cut or fate == "cut after"
        await asyncio.sleep(_READ_BACK_AFTER_S)
        await self.pass_over(slot)
        if not landed(unheard):
            raise Unavailable(f"{slot}: whether a write landed is not known")
        return cast("_T", unheard)


def _tried(write: Callable[[], _T]) -> _T | None:
    try:
        return write()
    except Conflict:
        return None
