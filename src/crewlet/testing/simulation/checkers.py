"""Checkers watch a run as it happens, each for one promise; what they look at is the ledger and the broker's state."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from crewlet.queue import Ack, Nak, Outcome, Subscription
from crewlet.testing.simulation.company import Attached, Handling
from crewlet.testing.simulation.ledger import Ledger

__all__ = ["Budget", "Checker", "Custody", "Fates", "Stops"]


class Checker:
    """Is told of each thing that happens; what a checker does not watch passes it by."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def started(self, handling: Handling) -> None:
        """A handler was called."""

    def ended(self, handling: Handling, outcome: Outcome) -> None:
        """A handler is about to answer; nothing was reported yet. An exception is told as a nak."""

    def releasing(self, mailbox: Subscription) -> None:
        """A successor is about to release what a lapsed holder had."""

    def stepped(self) -> None:
        """The world stands still between two moments."""


class Stops(Checker):
    """What is held, quiesced, detached or dead is handed nothing."""

    def started(self, handling: Handling) -> None:
        """Ask the attachment why it may not."""
        if why := handling.attached.stopped:
            self.ledger.found("stopped", f"{handling.node} was handed {[*handling.deliveries]}, yet {why}")


class Custody(Checker):
    """A message is in one pair of hands, which the broker knows; but for a holder whose ack clock ran out."""

    def started(self, handling: Handling) -> None:
        """Look at who else works it, and at whose the broker says it is."""
        for event_id in handling.deliveries:
            if (handling.mailbox, event_id) not in self.ledger.published:
                self.ledger.found("custody", f"{handling.node} was handed {event_id}, which nobody published")
            elif event_id in handling.not_ours:
                self._not_held(handling, event_id)
            for other in self.ledger.running:
                if other is not handling and other.mailbox == handling.mailbox and event_id in other.deliveries:
                    self._at_once(handling, other, event_id)

    def _not_held(self, handling: Handling, event_id: str) -> None:
        if self.ledger.may_have_lost(handling.attached):
            self.ledger.counts["begun_after_the_ack_clock"] += 1
        elif (handling.mailbox, event_id) in self.ledger.acknowledged_late:
            # The holder before was late and done: its word is taken, though a successor has the message in hand.
            self.ledger.counts["begun_after_a_late_ack"] += 1
        else:
            self.ledger.found(
                "custody", f"{handling.node} was handed {event_id}, which the broker says it does not hold"
            )

    def _at_once(self, handling: Handling, other: Handling, event_id: str) -> None:
        if self.ledger.is_lost(other) or event_id in handling.not_ours:
            self.ledger.counts["at_work_twice_after_the_ack_clock"] += 1
        else:
            self.ledger.found("custody", f"{handling.node} was handed {event_id}, which {other.node} works")


class Budget(Checker):
    """No message is delivered more often than it may, each delivery costs one, and a handler is handed the last too."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._failed_at_s: dict[tuple[Subscription, str], float] = {}
        self._buried: set[tuple[Subscription, str]] = set()
        self._last: dict[tuple[Subscription, str], int] = {}
        self._calls: Counter[tuple[Subscription, str]] = Counter()

    def started(self, handling: Handling) -> None:
        """Count."""
        most = self.ledger.config.max_deliver
        for event_id, delivery in handling.deliveries.items():
            if event_id in handling.not_ours:
                continue
            mail = handling.mailbox, event_id
            self._calls[mail] += 1
            if not self._last.get(mail, 0) < delivery <= most:
                self.ledger.found(
                    "budget", f"{event_id}: delivery {delivery} of {most} after {self._last.get(mail, 0)}"
                )
            if self._calls[mail] > most:
                self.ledger.found("budget", f"{event_id}: {self._calls[mail]} calls, {most} at most")
            self._last[mail] = delivery

    def ended(self, handling: Handling, outcome: Outcome) -> None:
        """Note when it failed."""
        if isinstance(outcome, Nak):
            for event_id in handling.deliveries:
                self._failed_at_s[handling.mailbox, event_id] = self.ledger.now_s()

    def stepped(self) -> None:
        """Only a message that has spent its budget is a dead letter."""
        most = self.ledger.config.max_deliver
        for letter in self.ledger.view.letters():
            mail = letter.mailbox, letter.event_id
            if letter.deliveries != most:
                self.ledger.found("budget", f"{letter.event_id} was buried after {letter.deliveries} deliveries")
            if mail not in self._buried and self._last.get(mail) == most - 1 and self._none_was_stopped_since(mail):
                self.ledger.found("budget", f"{letter.event_id} was buried, and its last delivery reached no handler")
            self._buried.add(mail)

    def _none_was_stopped_since(self, mail: tuple[Subscription, str]) -> bool:
        """Whether whoever took a message since its failure had it alone in hand and nothing to hand it back for."""
        failed_at_s = self._failed_at_s.get(mail)
        if failed_at_s is None or self.ledger.last_closed_s.get(mail[0], -1.0) >= failed_at_s:
            return False
        attached = [one for one in self.ledger.attached if one.mailbox == mail[0]]
        return all(self._handed_nothing_back(one, failed_at_s) for one in attached)

    def _handed_nothing_back(self, attached: Attached, since_s: float) -> bool:
        if attached.closed_at_s is not None:
            return attached.closed_at_s < since_s
        is_well = attached.is_heard and not attached.stopped and not self.ledger.may_have_lost(attached)
        return is_well and not attached.hauls and attached.client.healed_at_s < since_s


_AT_ONCE_S: Final = 0.5


class Fates(Checker):
    """Each acknowledged publish is waiting, worked, or buried once; what is worked or buried does not come back."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._over: defaultdict[Subscription, set[str]] = defaultdict(set)
        self._spent: defaultdict[Subscription, set[str]] = defaultdict(set)
        self._reported: dict[tuple[Subscription, str], tuple[int, str, float]] = {}

    def started(self, handling: Handling) -> None:
        """What was acknowledged, and reported, is over."""
        for event_id in handling.deliveries:
            if event_id in self._over[handling.mailbox] and event_id not in handling.not_ours:
                self.ledger.found("fates", f"{event_id} was acknowledged, and {handling.node} was handed it again")

    def ended(self, handling: Handling, outcome: Outcome) -> None:
        """Note what must become of it."""
        if isinstance(outcome, Ack):
            self.ledger.acknowledged_ids[handling.mailbox].update(handling.deliveries)
            if not handling.attached.is_heard or self.ledger.is_lost(handling):
                self.ledger.acknowledged_late.update((handling.mailbox, event_id) for event_id in handling.deliveries)
        if not handling.attached.is_heard:
            return
        for event_id, delivery in self.ledger.holds_now(handling).items():
            self._reported[handling.mailbox, event_id] = delivery, handling.node, self.ledger.now_s()
            if isinstance(outcome, Ack):
                self._over[handling.mailbox].add(event_id)
            elif delivery >= self.ledger.config.max_deliver:
                self._spent[handling.mailbox].add(event_id)

    def stepped(self) -> None:
        """Every message has exactly one fate."""
        letters = self.ledger.view.letter_counts()
        for (mailbox, event_id), count in letters.items():
            if count > 1:
                self.ledger.found("fates", f"{event_id} of {mailbox.group} was buried {count} times")
        for mailbox in self.ledger.mailboxes:
            ids = [place.event_id for place in self.ledger.view.places(mailbox)]
            if len(ids) != len({*ids}):
                self.ledger.found("fates", f"{mailbox.topic} keeps one event twice: {ids}")
            self._look_at(mailbox, {*ids}, {event_id for where, event_id in letters if where == mailbox})
            self._look_at_reported(mailbox)

    def _look_at(self, mailbox: Subscription, there: set[str], buried: set[str]) -> None:
        over, acknowledged = self._over[mailbox], self.ledger.acknowledged_ids[mailbox]
        broken = {
            "was buried and is still there": there & buried,
            "was acknowledged and is there": there & over,
            "was acknowledged and is buried": buried & over,
            "has spent its budget and is not buried": self._spent[mailbox] - buried,
            "is lost: not there, not buried, and nobody acknowledged it": (
                self.ledger.published_ids[mailbox] - there - buried - acknowledged
            ),
        }
        for what, ids in broken.items():
            for event_id in sorted(ids):
                self.ledger.found("fates", f"{event_id} {what}")

    def _look_at_reported(self, mailbox: Subscription) -> None:
        """An outcome acts at once, not when a clock runs out."""
        if not self._reported:
            return
        places = self.ledger.view.by_id(mailbox)
        for mail, (delivery, node, at_s) in [*self._reported.items()]:
            if mail[0] != mailbox or self.ledger.now_s() - at_s < _AT_ONCE_S:
                continue
            del self._reported[mail]
            place = places.get(mail[1])
            if place is not None and (place.deliveries, place.holder) == (delivery, node):
                self.ledger.found("fates", f"{mail[1]}: what {node} answered at {at_s:.3f} has not acted yet")
