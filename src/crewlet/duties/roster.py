"""Who is in the company: what absence is judged by."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Roster"]


class Roster(Protocol):
    """The agent seats of the revision that the whole company runs."""

    async def agent_handles(self) -> frozenset[str]:
        """The handles of all of them.

        Raises ``Unavailable`` where this node cannot say which revision is current, or has not applied it: a node that
        is behind must not take a seat for gone that was just added.
        """
        ...
