"""How often a rolling update may move a seat, and where it did so more often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from crewlet.testing.fleet_simulation.rules import named

__all__ = ["Restart", "SharedSeats", "moved_too_often"]

_AWAY_AND_HOME = 2


@dataclass(frozen=True, slots=True)
class Restart:
    """One node's: which seats it held before, and how often each seat moved until the fleet was at rest again."""

    node: str
    held: Collection[str]
    moved: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SharedSeats:
    """The seats of one placement, and over how many nodes they are divided."""

    handles: Collection[str]
    nodes: int

    @property
    def spare(self) -> int:
        """How many more seats all shares have room for than there are: none where they come out even."""
        return -len(self.handles) % max(self.nodes, 1)

    def moves_above_two_max(self, restarts: int) -> int:
        """How many moves over two a seat an update may come to, over all seats.

        A restart leaves at most as many seats with peers as there are spare places, and such a seat moves again when
        that peer is restarted, twice at most.
        """
        return _AWAY_AND_HOME * self.spare * max(restarts - 1, 0)


def moved_too_often(restarts: Sequence[Restart], groups: Sequence[SharedSeats]) -> Iterator[str]:
    """What was moved more often than it may be: by one restart, and by all of them."""
    for restart in restarts:
        if others := sorted({*restart.moved} - {*restart.held}):
            yield f"a restart of {restart.node} moved {named(others)}, which it did not hold"
        if often := sorted(handle for handle, moves in restart.moved.items() if moves > _AWAY_AND_HOME):
            yield f"a restart of {restart.node} moved {named(often)} {max(restart.moved.values())} times at most"
    moves: Counter[str] = Counter()
    for restart in restarts:
        moves.update(restart.moved)
    for group in groups:
        often = sorted(handle for handle in group.handles if moves[handle] > _AWAY_AND_HOME)
        above = sum(moves[handle] - _AWAY_AND_HOME for handle in often)
        if above > group.moves_above_two_max(len(restarts)):
            most = max(moves[handle] for handle in often)
            yield f"a rolling update moved {named(often)} {most} times at most, with {group.spare} places to spare"
