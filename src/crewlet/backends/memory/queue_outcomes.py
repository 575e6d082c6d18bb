"""What a handler's outcome does to one message in the twin: settled, put behind, at the head again, or buried. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from crewlet.queue import Ack, Defer, Outcome, QueueConfig

__all__ = ["Acknowledge", "Bury", "HandBack", "PutBehind", "Verdict", "headroom", "verdict"]


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Gone from the mailbox."""


@dataclass(frozen=True, slots=True)
class HandBack:
    """At the head again."""


@dataclass(frozen=True, slots=True)
class PutBehind:
    """Behind all that is waiting: what a backoff does to the order, without the time that it takes (E-035)."""


@dataclass(frozen=True, slots=True)
class Bury:
    """Its budget is spent."""

    reason: str


Verdict = Acknowledge | HandBack | PutBehind | Bury


def headroom(deliveries: int, config: QueueConfig) -> int:
    """How many further deliveries a message has; ``deliveries`` counts this one (E-043)."""
    return max(config.max_deliver - deliveries, 0)


def verdict(outcome: Outcome, deliveries: int, config: QueueConfig) -> Verdict:
    """What an outcome means for a message on its ``deliveries``-th delivery (E-035, E-036, E-039, E-041)."""
    if isinstance(outcome, Ack):
        return Acknowledge()
    if headroom(deliveries, config) == 0:
        kind = "deferred" if isinstance(outcome, Defer) else "failed"
        return Bury(f"{kind} on delivery {deliveries} of {config.max_deliver}: {outcome.reason}")
    return HandBack() if isinstance(outcome, Defer) else PutBehind()
