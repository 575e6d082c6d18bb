"""Who answered a question to every live node: a short answer must not look like a quiet company (S2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from crewlet.base.errors import Unavailable
from crewlet.queue import Answer

__all__ = ["WHOLE", "Coverage", "NodeAnswered", "PeersSilent", "coverage_of"]

_NO_ANSWER: Final = "no answer in time"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswered:
    """One node that was asked: whether it answered, and why it did not."""

    id: str
    answered: bool
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Every live node, this one included, by name; ``complete`` where each of them answered."""

    nodes: tuple[NodeAnswered, ...] = ()
    complete: bool = True

    def missing(self) -> str:
        """Who did not answer, and why, in words; empty where nobody is missing."""
        return ", ".join(f"{each.id} ({each.error})" for each in self.nodes if not each.answered)


class PeersSilent(Unavailable):
    """No node that answered knows it, and a live one did not answer; ``missing`` says who, and why."""

    def __init__(self, what: str, missing: str) -> None:
        self.missing = missing
        super().__init__(f"{what}: no node that answered knows it, and {missing} did not answer")


WHOLE: Final = Coverage()
"""Of a question that nobody had to be asked."""


def coverage_of(asked: Collection[str], answers: Iterable[Answer], unreadable: Mapping[str, str]) -> Coverage:
    """What the nodes ``asked`` made of it; ``unreadable`` says of a node why its answer was none. Pure."""
    said = {answer.node: answer.error for answer in answers}
    nodes = tuple(_answered(node, said, unreadable) for node in sorted({*asked, *said}))
    return Coverage(nodes=nodes, complete=all(each.answered for each in nodes))


def _answered(node: str, said: Mapping[str, str], unreadable: Mapping[str, str]) -> NodeAnswered:
    error = unreadable.get(node, "") or said.get(node, _NO_ANSWER)
    return NodeAnswered(id=node, answered=not error, error=error)
