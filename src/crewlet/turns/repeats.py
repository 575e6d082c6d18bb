"""The same call over and over, within one phase: allowed, refused with a word, and then the end of its turn. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto

import msgspec

from crewlet.base import limits
from crewlet.base.errors import CrewletError
from crewlet.llm import ToolCall

__all__ = ["REPEATED_CALL", "Repeat", "RepeatedCall", "Repeats", "why_refused"]

REPEATED_CALL = "repeated_call"
"""The guard's kind."""


class Repeat(Enum):
    """What becomes of a call."""

    MAKE = auto()
    REFUSE = auto()
    END = auto()


class RepeatedCall(CrewletError):
    """A model went on with the same call after it was told that it is made no more."""

    def __init__(self, tool: str, times: int) -> None:
        super().__init__(f"`{tool}` was called with the same arguments {times} times and nothing new beside it")


@dataclass(slots=True)
class Repeats:
    """Counts a phase's calls by name and arguments; a call that the phase had not made before begins anew.

    So work in a circle that gets somewhere (change, test, change, test) goes on, and one that does not is ended,
    whether it is one call or several in turn.
    """

    _counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    _known: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def next(self, call: ToolCall) -> Repeat:
        """Count ``call``, and say what becomes of it. Raises nothing; the same calls bring the same words."""
        key = (call.name, _arguments(call))
        if key not in self._known:
            self._known.add(key)
            self._counts.clear()
        self._counts[key] += 1
        if self._counts[key] <= limits.REPEATED_CALLS_MADE_MAX:
            return Repeat.MAKE
        refused = self._counts[key] - limits.REPEATED_CALLS_MADE_MAX
        return Repeat.REFUSE if refused <= limits.REPEATED_CALLS_REFUSED_MAX else Repeat.END

    def times(self, call: ToolCall) -> int:
        """How often the call was asked for since the last new one."""
        return self._counts[call.name, _arguments(call)]


def why_refused(call: ToolCall) -> str:
    """What a model is told instead of the result."""
    return (
        f"not run: you called `{call.name}` with these very arguments {limits.REPEATED_CALLS_MADE_MAX} times already,"
        " and nothing new beside it. Go by what it said, try another way, or end your work and say what is in the way:"
        " this turn is ended if you go on."
    )


def _arguments(call: ToolCall) -> str:
    if call.arguments is None:
        return call.raw
    return msgspec.json.encode(call.arguments, order="deterministic").decode()
