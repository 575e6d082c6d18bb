"""Whether a seat has still to look around at its place in the company, as one turn of it asks and says."""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["NeverDue", "OnboardingMarks"]


class OnboardingMarks(Protocol):
    """One seat's mark; made for one turn. Nothing here raises ``Unavailable``: no turn fails over it."""

    async def due(self, turn_id: str) -> str:
        """The place to be onboarded at (its chain hash), claimed for this turn; empty where none is due.

        Empty too where that is not known, or another turn is about it: the seat works, and its next turn asks again.
        """
        ...

    async def mark(self, turn_id: str, chain_hash: str) -> bool:
        """The seat is onboarded at that place, and the claim is over; false where that could not be put on record."""
        ...

    async def give_back(self, turn_id: str) -> None:
        """The claim is over, and the seat as it was."""
        ...


class NeverDue:
    """A seat that is never onboarded."""

    async def due(self, turn_id: str) -> str:
        """Never."""
        await asyncio.sleep(0)
        return ""

    async def mark(self, turn_id: str, chain_hash: str) -> bool:
        """On record nowhere."""
        await asyncio.sleep(0)
        return False

    async def give_back(self, turn_id: str) -> None:
        """There is nothing to give back."""
