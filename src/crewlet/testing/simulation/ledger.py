"""What a run knows: what was promised, what handlers did, who is at work now, and what was found to be wrong."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from crewlet.events import Event
from crewlet.queue import QueueConfig, Subscription
from crewlet.testing.simulation.company import Attached, Handling
from crewlet.testing.simulation.mail_view import MailView
from crewlet.testing.simulation.trace import Trace

__all__ = ["Finding", "Ledger"]

# A holder at work extends an ack clock every third of it, so at least two thirds are left when it stops to.
_CLOCK_LEFT_MIN = 2 / 3
_ROUNDING_S = 1e-3


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule, and what broke it."""

    rule: str
    what: str


@dataclass(slots=True, eq=False)
class Ledger:
    """Filled by the run and read by the checkers, who add what they find."""

    config: QueueConfig
    mailboxes: tuple[Subscription, ...]
    view: MailView
    trace: Trace
    published: dict[tuple[Subscription, str], Event] = field(default_factory=dict[tuple[Subscription, str], Event])
    published_at_s: dict[tuple[Subscription, str], float] = field(default_factory=dict[tuple[Subscription, str], float])
    published_ids: defaultdict[Subscription, set[str]] = field(default_factory=lambda: defaultdict(set[str]))
    acknowledged_ids: defaultdict[Subscription, set[str]] = field(default_factory=lambda: defaultdict(set[str]))
    acknowledged_late: set[tuple[Subscription, str]] = field(default_factory=set[tuple[Subscription, str]])
    attached: list[Attached] = field(default_factory=list[Attached])
    last_closed_s: dict[Subscription, float] = field(default_factory=dict[Subscription, float])
    running: list[Handling] = field(default_factory=list[Handling])
    counts: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def attach(self, attached: Attached) -> None:
        """One more; of those that are closed their mailbox's last second is kept."""
        for one in self.attached:
            if one.closed_at_s is not None:
                last_s = self.last_closed_s.get(one.mailbox, 0.0)
                self.last_closed_s[one.mailbox] = max(last_s, one.closed_at_s)
        self.attached = [one for one in self.attached if one.closed_at_s is None] + [attached]

    def found(self, rule: str, what: str) -> None:
        """A rule is broken."""
        self.trace.add(f"FOUND {rule}: {what}")
        self.findings.append(Finding(rule, what))

    def now_s(self) -> float:
        """The virtual second."""
        return asyncio.get_running_loop().time()

    def may_have_lost(self, attached: Attached) -> bool:
        """Whether ack clocks of what this attachment has in hand may have run out, or were ended by a release."""
        since_s = attached.out_of_reach_since_s()
        if attached.stale or since_s is None:
            return attached.stale
        return self.now_s() - since_s >= _CLOCK_LEFT_MIN * self.config.ack_wait_s - _ROUNDING_S

    def mark_lost(self, attached: Attached) -> None:
        """Remember it, though it is heard of again."""
        attached.stale = True
        for handling in self.running:
            if handling.attached is attached:
                handling.lost = True

    def is_lost(self, handling: Handling) -> bool:
        """Whether another may have been given what this call works."""
        return handling.lost or self.may_have_lost(handling.attached)

    def holds_now(self, handling: Handling) -> dict[str, int]:
        """Those of its events that the broker still counts as its own, each with the number of its delivery."""
        places = self.view.by_id(handling.mailbox)
        return {
            event_id: delivery
            for event_id, delivery in handling.deliveries.items()
            if (place := places.get(event_id)) is not None
            and (place.holder, place.deliveries) == (handling.node, delivery)
        }
