"""Who is who in a run, as the simulation knows it without asking the queue: clients, attachments, handler calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.base.clock import Clock
from crewlet.events import Event
from crewlet.queue import BatchOptions, EventQueue, Subscription

__all__ = ["Attached", "Client", "Fault", "Handling", "SimulatedQueue"]


class SimulatedQueue(EventQueue, Protocol):
    """A client of the queue that can be cut off and killed."""

    @property
    def task_count(self) -> int:
        """How many background tasks it runs."""
        ...

    def cut(self) -> None:
        """It and the broker hear nothing of each other."""
        ...

    def heal(self) -> None:
        """They hear each other again."""
        ...

    def crash(self) -> None:
        """Its process is killed."""
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    """What is planted into a run: another broker, or something between each twin and who uses it."""

    name: str
    broker: Callable[[Clock], MemoryBroker] = MemoryBroker
    sabotage: Callable[[MemoryBroker], Callable[[MemoryQueue], EventQueue]] | None = None


@dataclass(slots=True, eq=False)
class Client:
    """One process; a killed one is never used again, its successor has another node name."""

    node: str
    queue: SimulatedQueue
    crashed: bool = False
    cut_at_s: float | None = None
    attached: dict[Subscription, Attached] = field(default_factory=dict[Subscription, "Attached"])
    early_holds: dict[Subscription, set[str]] = field(default_factory=dict[Subscription, set[str]])
    healed_at_s: float = -1.0

    @property
    def is_heard(self) -> bool:
        """Whether the broker hears of it now."""
        return not self.crashed and self.cut_at_s is None


@dataclass(slots=True, eq=False)
class Attached:
    """One attachment, and what stops it. ``began_with`` is what its node held of the mailbox before, and how often.

    ``changed_at_s`` is when it last had to ask for mail anew. ``former_options`` are those of before, each with the
    second in which others took its place.
    """

    client: Client
    mailbox: Subscription
    hauls: bool
    options: BatchOptions
    began_with: frozenset[tuple[str, int]]
    holds: set[str]
    quiesced: bool = False
    closed_at_s: float | None = None
    stale: bool = False
    changed_at_s: float = 0.0
    former_options: list[tuple[float, BatchOptions]] = field(default_factory=list[tuple[float, BatchOptions]])

    @property
    def stopped(self) -> str:
        """Why it may be handed nothing; empty where it may."""
        if self.client.crashed:
            return "its process is dead"
        if self.closed_at_s is not None:
            return "it was detached"
        if self.quiesced:
            return "it is quiesced"
        return f"held by {sorted(self.holds)}" if self.holds else ""

    @property
    def is_heard(self) -> bool:
        """Whether an outcome that its handler returns now is reported now."""
        return self.closed_at_s is None and self.client.is_heard

    def change_options(self, options: BatchOptions, now_s: float) -> None:
        """They hold from its next haul on."""
        self.former_options.append((now_s, self.options))
        self.options = options

    def options_since(self, at_s: float) -> list[BatchOptions]:
        """Those under which a haul may have been collected that began at ``at_s`` or later."""
        return [self.options, *(former for until_s, former in self.former_options if until_s >= at_s)]

    def out_of_reach_since_s(self) -> float | None:
        """Since when nobody extends the ack clocks of what it has in hand."""
        times = [at_s for at_s in (self.closed_at_s, self.client.cut_at_s) if at_s is not None]
        return min(times, default=None)


@dataclass(slots=True, eq=False)
class Handling:
    """One handler call: which events, each with the number of its delivery, and until when unless it is stopped.

    ``lost``: its ack clock may have run out.
    ``not_ours`` are those that its attachment no longer held when the call began.
    """

    attached: Attached
    key: str
    events: tuple[Event, ...]
    deliveries: dict[str, int]
    since_s: float
    until_s: float = 0.0
    lost: bool = False
    not_ours: frozenset[str] = frozenset()

    @property
    def mailbox(self) -> Subscription:
        """Whose mail it works."""
        return self.attached.mailbox

    @property
    def node(self) -> str:
        """Where it runs."""
        return self.attached.client.node
