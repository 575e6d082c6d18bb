"""The handlers of a run: each does what the message says its handlers do, and tells the checkers of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from crewlet.queue import Ack, Batch, Defer, Delivery, Nak, Outcome
from crewlet.testing.simulation.checkers import Checker
from crewlet.testing.simulation.company import Attached, Handling
from crewlet.testing.simulation.ledger import Ledger
from crewlet.testing.simulation.order_checkers import key_of
from crewlet.testing.simulation.plan import Act, ActKind

__all__ = ["Hands", "Script"]

_AT_ONCE = Act(ActKind.ACK, 0.0)


class HandlerFault(RuntimeError):
    """What a handler of a run raises where its message says so."""


class Script:
    """What each delivery of each event leads to. Once ``calm``, every handler acknowledges at once."""

    def __init__(self) -> None:
        self.calm = False
        self._acts: dict[str, tuple[Act, ...]] = {}

    def write(self, event_id: str, acts: tuple[Act, ...]) -> None:
        """Say how the handlers of an event behave."""
        self._acts[event_id] = acts

    def act(self, event_id: str, delivery: int) -> Act:
        """What a handler does with this delivery."""
        acts = self._acts.get(event_id, ())
        return _AT_ONCE if self.calm or not 0 < delivery <= len(acts) else acts[delivery - 1]


class Hands:
    """The handler of one attachment."""

    def __init__(self, attached: Attached, script: Script, ledger: Ledger, checkers: Iterable[Checker]) -> None:
        self._attached = attached
        self._script = script
        self._ledger = ledger
        self._checkers = checkers

    async def one(self, delivery: Delivery) -> Outcome:
        """Work a single delivery."""
        return await self._work(key_of(delivery.event), (delivery,))

    async def batch(self, batch: Batch) -> Outcome:
        """Work a partition as its first message says."""
        return await self._work(batch.key, batch.deliveries)

    async def _work(self, key: str, deliveries: tuple[Delivery, ...]) -> Outcome:
        handling = self._begin(key, deliveries)
        first = handling.events[0].id
        act = self._script.act(first, handling.deliveries[first])
        handling.until_s = handling.since_s + act.lasts_s
        try:
            if act.lasts_s:
                await asyncio.sleep(act.lasts_s)
        except asyncio.CancelledError:
            self._ledger.trace.add(f"{handling.node} is stopped at {[*handling.deliveries]}")
            self._ledger.running.remove(handling)
            raise
        return self._end(handling, act)

    def _begin(self, key: str, deliveries: tuple[Delivery, ...]) -> Handling:
        most = self._ledger.config.max_deliver
        handling = Handling(
            self._attached,
            key,
            tuple(delivery.event for delivery in deliveries),
            {delivery.event.id: most - delivery.headroom for delivery in deliveries},
            self._ledger.now_s(),
        )
        handling.not_ours = frozenset(handling.deliveries.keys() - self._ledger.holds_now(handling).keys())
        self._ledger.counts["calls"] += 1
        self._ledger.trace.add(f"{handling.node} works {_said(handling)}")
        self._ledger.running.append(handling)
        for checker in self._checkers:
            checker.started(handling)
        return handling

    def _end(self, handling: Handling, act: Act) -> Outcome:
        outcome = _outcome(act)
        self._ledger.counts[f"answers_{act.kind}"] += 1
        heard = "" if handling.attached.is_heard else ", not heard"
        self._ledger.trace.add(f"{handling.node} answers {act.kind} to {_said(handling)}{heard}")
        self._ledger.running.remove(handling)
        handling.attached.changed_at_s = self._ledger.now_s()
        if handling.attached.client.crashed:
            self._ledger.found("stopped", f"a handler of {handling.node} went on after its process was killed")
        for checker in self._checkers:
            checker.ended(handling, outcome)
        if isinstance(outcome, Defer):
            handling.attached.quiesced = True
        if act.kind is ActKind.RAISE:
            raise HandlerFault(f"as the message says, on delivery {handling.deliveries}")
        if act.kind is ActKind.CANCEL:
            raise asyncio.CancelledError
        return cast("Outcome", None) if act.kind is ActKind.SILENT else outcome


def _outcome(act: Act) -> Outcome:
    match act.kind:
        case ActKind.ACK | ActKind.HANG | ActKind.SILENT:
            return Ack()
        case ActKind.NAK | ActKind.RAISE | ActKind.CANCEL:
            return Nak(f"{act.kind}, as the message says")
        case ActKind.DEFER:
            return Defer("as the message says")


def _said(handling: Handling) -> str:
    mail = " ".join(f"{event_id}#{delivery}" for event_id, delivery in handling.deliveries.items())
    return f"{mail} of {handling.mailbox.topic} ({handling.mailbox.group})"
