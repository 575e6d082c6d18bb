"""The rules of a fleet that every moment of a simulated hour is held to; each finding names its rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from crewlet.testing import simulated

__all__ = ["RULES", "Finding", "Findings", "Rule", "ToolCalls", "named"]

Rule = Literal["one holder", "fence", "epochs", "gate", "kept", "covered", "share", "still", "rest", "moves", "whole"]

RULES: dict[Rule, str] = {
    "one holder": "no two nodes would begin a turn on one seat at the same moment",
    "fence": "no tool call under a lower epoch once a higher one is granted, so none after the first under that",
    "epochs": "no epoch of a seat is granted twice",
    "gate": "no seat is granted while a lease at a lower protocol lives that was there before",
    "kept": "no seat is torn down as lost while its lease has long to live",
    "covered": "each seat is held, or the nodes say why nobody holds it",
    "share": "no node holds more of a group than its share",
    "still": "once at rest, nothing moves",
    "rest": "a fleet that is well comes to rest in time",
    "moves": "a restart moves a node's own seats alone, twice at most; so does an update where shares come out even",
    "whole": "no loop and no task of a node fails, whatever befalls it",
}

Finding = simulated.Finding[Rule]
"""A rule that was broken."""
Findings = simulated.Findings[Rule]
"""What was found."""


class ToolCalls:
    """Every tool call by its seat and epoch, and every grant."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._granted: dict[str, tuple[int, str]] = {}
        self.calls = 0
        self.grants: Counter[str] = Counter()

    def made(self, handle: str, epoch: int, owner: str) -> None:
        """A tool was called."""
        self.calls += 1
        granted, to = self._granted.get(handle, (0, ""))
        if epoch < granted:
            what = f"{owner} calls a tool for {handle} at epoch {epoch} after {to} was granted it at {granted}"
            self._findings.add("fence", what)

    def granted(self, handle: str, epoch: int, owner: str) -> None:
        """A seat was granted: its epochs only grow, whoever gets them."""
        self.grants[handle] += 1
        before, _ = self._granted.get(handle, (0, ""))
        if epoch <= before:
            self._findings.add("epochs", f"{owner} was granted {handle} at epoch {epoch}, after {before}")
        else:
            self._granted[handle] = epoch, owner


def named(handles: Iterable[str], most: int = 5) -> str:
    """Some of them, and how many more there are."""
    every = [*handles]
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")
