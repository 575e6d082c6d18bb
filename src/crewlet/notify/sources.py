"""The sources that a node knows, by name: filled once by whoever puts the node together, read by routing and inbox."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from crewlet.notify.contract import Source
from crewlet.notify.prompt import PlainPrompt, Prompt
from crewlet.notify.threads import ThreadReader

__all__ = ["Sources", "namespaced"]

_PLAIN: Final = PlainPrompt()


class Sources:
    """Sources by name. One that this node does not know means nothing in particular (``PlainPrompt``)."""

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self._by_name: dict[str, Source] = {}
        for source in sources:
            if source.name in self._by_name:
                message = f"two sources are called {source.name!r}"
                raise ValueError(message)
            self._by_name[source.name] = source

    def source(self, name: str) -> Source | None:
        """The source of that name."""
        return self._by_name.get(name)

    def prompt(self, name: str) -> Prompt:
        """What its notifications mean."""
        known = self._by_name.get(name)
        return _PLAIN if known is None else known.prompt

    def threads(self, name: str) -> ThreadReader | None:
        """Who can read its threads."""
        known = self._by_name.get(name)
        return None if known is None else known.threads


def namespaced(source: str, key: str) -> str:
    """A source's own key as it is known to everybody; none stays none."""
    return f"{source}:{key}" if key else ""
