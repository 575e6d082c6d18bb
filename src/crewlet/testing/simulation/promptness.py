"""The checker of time: nobody who could work is left waiting, and no window is longer than it was asked to be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from crewlet.testing.simulation.checkers import Checker
from crewlet.testing.simulation.company import Attached, Handling
from crewlet.testing.simulation.ledger import Ledger

__all__ = ["Promptness"]

_PATIENCE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Idle:
    """An attachment that may work and does not: beside mail that waits, or with mail that it has collected."""

    calls: int
    event_id: str
    deliveries: int
    collected: bool


class Promptness(Checker):
    """Who may be handed mail takes what waits at once, and works what it collected when its window has passed."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._calls: Counter[Attached] = Counter()
        self._idle: dict[Attached, tuple[_Idle, float]] = {}

    def started(self, handling: Handling) -> None:
        """Whoever works is not idle."""
        self._calls[handling.attached] += 1

    def stepped(self) -> None:
        """Look at who is idle as it was before, and for how long."""
        now_s = self.ledger.now_s()
        before, self._idle = self._idle, {}
        for attached in self.ledger.attached:
            if (idle := self._idle_with(attached)) is None:
                continue
            known, since_s = before.get(attached, (idle, now_s))
            self._idle[attached] = idle, since_s if known == idle else now_s
            window_s = _window_s(attached, since_s) if idle.collected and attached.hauls else 0.0
            if known == idle and now_s - since_s > window_s + _PATIENCE_S:
                what = "works not what it collected" if idle.collected else "takes nothing"
                self.ledger.found("promptness", f"{attached.client.node} {what}: {idle.event_id} since {since_s:.3f}")

    def _idle_with(self, attached: Attached) -> _Idle | None:
        busy = any(handling.attached is attached for handling in self.ledger.running)
        if busy or attached.stopped or not attached.is_heard or self.ledger.may_have_lost(attached):
            return None
        places = self.ledger.view.places(attached.mailbox)
        node, calls = attached.client.node, self._calls[attached]
        for place in places:
            if place.holder == node and (place.event_id, place.deliveries) not in attached.began_with:
                return _Idle(calls, place.event_id, place.deliveries, collected=True)
        for place in places:
            if place.holder is None:
                return _Idle(calls, place.event_id, place.deliveries, collected=False)
        return None


def _window_s(attached: Attached, since_s: float) -> float:
    return max(options.linger_s for options in attached.options_since(since_s))
