"""Checkers of order: who is served first in a mailbox, and how a haul is cut and worked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crewlet.events import Event
from crewlet.queue import Defer, Nak, Outcome, Subscription
from crewlet.testing.simulation.checkers import Checker
from crewlet.testing.simulation.company import Attached, Handling
from crewlet.testing.simulation.ledger import Ledger

__all__ = ["Hauls", "Order", "key_of"]

_ROUNDING_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class _Claim:
    """Where a message stands since its last delivery ended: before or behind ``others``, each delivered so often."""

    delivery: int
    others: dict[str, int]


class Order(Checker):
    """Mail is served as published; a failure behind what was waiting, a deferral or a released message at the head.

    A haul is taken whole, so what counts is who still waits, untouched, when another's turn has come.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._behind: dict[tuple[Subscription, str], _Claim] = {}
        self._ahead: dict[tuple[Subscription, str], _Claim] = {}

    def started(self, handling: Handling) -> None:
        """Look for who was passed over."""
        waiting = self.ledger.view.waiting(handling.mailbox)
        for event_id, delivery in handling.deliveries.items():
            if event_id in handling.not_ours:
                continue
            self._as_published(handling, event_id, delivery)
            self._after_those_it_stands_behind(handling.mailbox, event_id, delivery, waiting)
            self._after_those_at_the_head(handling.mailbox, event_id, waiting)

    def ended(self, handling: Handling, outcome: Outcome) -> None:
        """Note where it stands from now on."""
        if not handling.attached.is_heard:
            return
        waiting = self.ledger.view.waiting(handling.mailbox)
        for event_id, delivery in self.ledger.holds_now(handling).items():
            if delivery >= self.ledger.config.max_deliver:
                continue
            if isinstance(outcome, Nak):
                self._behind[handling.mailbox, event_id] = _Claim(delivery, waiting)
            elif isinstance(outcome, Defer):
                self._ahead[handling.mailbox, event_id] = _Claim(delivery, _untouched(waiting))

    def releasing(self, mailbox: Subscription) -> None:
        """What is held comes back at the head."""
        untouched = _untouched(self.ledger.view.waiting(mailbox))
        for place in self.ledger.view.places(mailbox):
            if place.holder is not None and place.deliveries < self.ledger.config.max_deliver:
                self._ahead[mailbox, place.event_id] = _Claim(place.deliveries, untouched)

    def _as_published(self, handling: Handling, event_id: str, delivery: int) -> None:
        if delivery != 1:
            return
        places = self.ledger.view.by_id(handling.mailbox)
        if (mine := places.get(event_id)) is None:
            return
        for place in places.values():
            if place.holder is None and place.deliveries == 0 and place.sequence < mine.sequence:
                self.ledger.found("order", f"{event_id} was served before {place.event_id}, published earlier")

    def _after_those_it_stands_behind(
        self, mailbox: Subscription, event_id: str, delivery: int, waiting: dict[str, int]
    ) -> None:
        claim = self._behind.get((mailbox, event_id))
        if claim is None or delivery <= claim.delivery:
            return
        del self._behind[mailbox, event_id]
        for other, deliveries in claim.others.items():
            if waiting.get(other) == deliveries:
                self.ledger.found("order", f"{event_id} failed and was served before {other}, which was waiting")

    def _after_those_at_the_head(self, mailbox: Subscription, event_id: str, waiting: dict[str, int]) -> None:
        for (where, first), claim in self._ahead.items():
            if where == mailbox and event_id in claim.others and waiting.get(first) == claim.delivery:
                self.ledger.found("order", f"{event_id} was served before {first}, which had been handed back")


class Hauls(Checker):
    """A haul is within its cap, cut whole by key, and worked by age: of conversations, and of events in each.

    It takes all that waits, and has waited out its window unless it is full. What of a haul has not had its turn is
    what its node holds and no handler of that node has seen.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._seen: dict[tuple[Subscription, str, str], int] = {}
        self._left: dict[Attached, set[tuple[str, int]]] = {}

    def started(self, handling: Handling) -> None:
        """Compare the partition with what is left of its haul."""
        for event_id, delivery in handling.deliveries.items():
            self._seen[handling.mailbox, handling.node, event_id] = delivery
        events = handling.events
        if [*events] != sorted(events, key=_age):
            self.ledger.found("hauls", f"{[event.id for event in events]} are not in the order of their timestamps")
        if {key_of(event) for event in events} != {handling.key} and handling.attached.hauls:
            self.ledger.found("hauls", f"{[event.id for event in events]} are not all of key {handling.key}")
        if not self.ledger.may_have_lost(handling.attached):
            rest = self._rest(handling)
            self._compare_with_rest(handling, rest)
            if handling.attached.hauls:
                self._look_whether_whole(handling, rest)

    def _look_whether_whole(self, handling: Handling, rest: list[str]) -> None:
        attached, now_s = handling.attached, self.ledger.now_s()
        before = self._left.get(attached, set())
        places = self.ledger.view.by_id(handling.mailbox)
        self._left[attached] = {(each, places[each].deliveries) for each in rest}
        begins = not handling.deliveries.items() <= before
        since_s = self._collected_since_s(handling, rest)
        if not begins or attached.client.healed_at_s >= since_s or not attached.is_heard:
            return
        options = attached.options_since(since_s)
        if len(handling.events) + len(rest) >= min(each.max_events for each in options):
            return
        if now_s - since_s < min(each.linger_s for each in options) - _ROUNDING_S:
            self.ledger.found(
                "hauls", f"{[*handling.deliveries]} did not wait for company: collected since {since_s:.3f}"
            )
        for place in self.ledger.view.places(handling.mailbox):
            published_s = self.ledger.published_at_s.get((handling.mailbox, place.event_id), now_s)
            if place.holder is None and place.deliveries == 0 and published_s < now_s - _ROUNDING_S:
                self.ledger.found("hauls", f"{place.event_id} waited, and was left out of a haul that was not full")

    def _collected_since_s(self, handling: Handling, rest: list[str]) -> float:
        """The earliest second in which the haul may have begun: its first message was not there before."""
        known = self.ledger.published_at_s
        return min(known.get((handling.mailbox, each), 0.0) for each in (*handling.deliveries, *rest))

    def _rest(self, handling: Handling) -> list[str]:
        return [
            place.event_id
            for place in self.ledger.view.places(handling.mailbox)
            if place.holder == handling.node
            and place.event_id not in handling.deliveries
            and (place.event_id, place.deliveries) not in handling.attached.began_with
            and self._seen.get((handling.mailbox, handling.node, place.event_id)) != place.deliveries
        ]

    def _compare_with_rest(self, handling: Handling, rest: list[str]) -> None:
        options = handling.attached.options_since(self._collected_since_s(handling, rest))
        cap = max(each.max_events for each in options) if handling.attached.hauls else 1
        if len(handling.events) + len(rest) > cap:
            self.ledger.found("hauls", f"{len(handling.events) + len(rest)} messages in a haul of {cap}")
        for event_id in rest:
            event = self.ledger.published.get((handling.mailbox, event_id))
            if event is None:
                continue
            key = key_of(event)
            if key == handling.key:
                self.ledger.found("hauls", f"{event_id} of key {key} was left out of its partition")
            elif _age(event) < _age(handling.events[0]):
                self.ledger.found("hauls", f"{handling.key} was worked before {key}, whose {event_id} is older")


def _untouched(waiting: dict[str, int]) -> dict[str, int]:
    return {event_id: 0 for event_id, deliveries in waiting.items() if deliveries == 0}


def _age(event: Event) -> tuple[float, str]:
    return event.timestamp.timestamp(), event.id


def key_of(event: Event) -> str:
    """What an event of a run belongs together with."""
    return str(event.payload.get("key", ""))
