"""Small protocols that rooms share without knowing each other: the fence, the posture, late variables."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Fence", "OpenFence", "Posture", "Resolve", "ServingPosture"]


class Fence(Protocol):
    """The right to go on acting for a seat, held by whoever acts and checked before each outside step."""

    @property
    def epoch(self) -> int:
        """The epoch of the grant that this fence stands for."""
        ...

    def check(self) -> None:
        """Return while the grant stands; raise ``Fenced`` (or ``StoppedByPerson``) once it does not (S-074)."""
        ...


class OpenFence:
    """A fence that never closes, for work outside any seat."""

    @property
    def epoch(self) -> int:
        """Always 0: no grant stands behind it."""
        return 0

    def check(self) -> None:
        """Never raises."""


class Posture(Protocol):
    """Whether this node, given how far it follows the company's configuration, takes new work."""

    @property
    def name(self) -> str:
        """What it is called on surfaces: ``serve``, ``wait``, ``shed``, ``stuck``, ``isolated``."""
        ...

    def admits_work(self) -> bool:
        """False while deliveries must be deferred to better-configured peers."""
        ...


class ServingPosture:
    """The posture of a node whose configuration is its own file: it always serves."""

    @property
    def name(self) -> str:
        """``serve``."""
        return "serve"

    def admits_work(self) -> bool:
        """Always true."""
        return True


class Resolve(Protocol):
    """Late ``${VAR}`` expansion, at the point of use; the text keeps its references everywhere else."""

    def __call__(self, text: str) -> str:
        """``text`` with each ``${VAR}`` replaced. Raises ``ConfigError`` naming a variable that is not set."""
        ...
