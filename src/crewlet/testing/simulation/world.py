"""The world of one run: it takes the plan's steps, one after another, and keeps the ledger of what they promise."""

from __future__ import annotations

import asyncio
from typing import Final

from crewlet.base.errors import Unavailable
from crewlet.queue import BatchOptions
from crewlet.testing.simulation.actors import Actors
from crewlet.testing.simulation.checkers import Budget, Checker, Custody, Fates, Stops
from crewlet.testing.simulation.company import Fault
from crewlet.testing.simulation.ledger import Ledger
from crewlet.testing.simulation.mail_view import MailView
from crewlet.testing.simulation.order_checkers import Hauls, Order
from crewlet.testing.simulation.plan import Aside, Attach, Plan, Step
from crewlet.testing.simulation.promptness import Promptness
from crewlet.testing.simulation.trace import Trace
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["World"]

_ACK_WAITS_OF_CALM: Final = 5
_ACK_WAITS_OF_SWEEP: Final = 3
_CHECK_EVERY_S: Final = 7.0


class World:
    """Everything of one run; made on its loop."""

    def __init__(self, plan: Plan, fault: Fault) -> None:
        self._plan = plan
        clock = VirtualClock()
        broker = fault.broker(clock)
        self.ledger = Ledger(plan.config, plan.mailboxes, MailView(broker), Trace())
        kinds: tuple[type[Checker], ...] = (Stops, Custody, Budget, Fates, Order, Hauls, Promptness)
        self._checkers = [kind(self.ledger) for kind in kinds]
        self._actors = Actors(plan, fault, broker, clock, self.ledger, self._checkers)

    async def run(self) -> None:
        """Take every step, let all come to rest, clear the mailboxes; ends early where a rule is found broken."""
        try:
            await self._run()
        finally:
            for twin in self._actors.twins:
                await twin.close()

    async def _run(self) -> None:
        for mailbox in self._plan.mailboxes:
            await self._actors.clients[0].queue.ensure_subscription(mailbox)
        for at_s, step in self._plan.steps:
            await self._let_pass(at_s - self.ledger.now_s())
            if self.ledger.findings:
                return
            await self._try(step)
            self._check()
        await self._come_to_rest()
        if not self.ledger.findings:
            await self._sweep()
        self._check()

    async def _try(self, step: Step) -> None:
        begun_s = self.ledger.now_s()
        try:
            await self._actors.take(step)
        except Unavailable:
            self.ledger.trace.add("    unavailable")
            self.ledger.counts["unavailable"] += 1
        took_s = self.ledger.now_s() - begun_s
        if took_s > 0 and not isinstance(step, Aside):
            self.ledger.found("stopped", f"a step took {took_s:.3f} s, and acts at once by its promise: {step}")

    async def _let_pass(self, duration_s: float) -> None:
        """Wait, and look at the world now and then."""
        while duration_s > 0 and not self.ledger.findings:
            await asyncio.sleep(min(duration_s, _CHECK_EVERY_S))
            duration_s -= _CHECK_EVERY_S
            self._check()

    def _check(self) -> None:
        with self.ledger.view.still():
            for checker in self._checkers:
                checker.stepped()

    async def _come_to_rest(self) -> None:
        """Every line up, nothing held or quiesced, every handler well: whoever is attached works off what is there."""
        self.ledger.trace.add("all is well from here on")
        self._actors.script.calm = True
        # A second time, for what a handler that ran before still deferred.
        for _ in range(2):
            await self._lift_everything()
            await self._let_pass(_ACK_WAITS_OF_CALM * self._plan.config.ack_wait_s)
        for mailbox in self._plan.mailboxes:
            left = self.ledger.view.places(mailbox)
            if left and any(mailbox in client.attached for client in self._actors.clients):
                self.ledger.found("rest", f"{mailbox.topic} is attached, and {[place.event_id for place in left]} stay")

    async def _lift_everything(self) -> None:
        for client in self._actors.clients:
            if client.crashed:
                continue
            if client.cut_at_s is not None:
                self._actors.heal(client)
            for mailbox, attached in client.attached.items():
                for hold in sorted(attached.holds):
                    attached.holds.discard(hold)
                    await client.queue.lift(mailbox, hold)
                attached.quiesced = False
                await client.queue.unquiesce(mailbox)

    async def _sweep(self) -> None:
        """All clients close, a last one works what is there; then nothing is left, neither mail nor tasks."""
        for attached in [one for client in self._actors.clients for one in client.attached.values()]:
            attached.closed_at_s = self.ledger.now_s()
        await self._actors.close_all()
        heir = self._actors.client("heir")
        for number, mailbox in enumerate(self._plan.mailboxes):
            await self._actors.attach(heir, mailbox, Attach(0, number, hauls=False, options=BatchOptions()))
        await self._let_pass(_ACK_WAITS_OF_SWEEP * self._plan.config.ack_wait_s)
        for mailbox in self._plan.mailboxes:
            if left := self.ledger.view.places(mailbox):
                self.ledger.found("rest", f"{mailbox.topic} was swept, and {[place.event_id for place in left]} stay")
        await self._actors.close_all()
        self.ledger.counts["buried"] = len(self.ledger.view.letters())
        if tasks := {twin.node: twin.task_count for twin in self._actors.twins if twin.task_count}:
            self.ledger.found("tasks", f"tasks are left behind: {tasks}")
        if len(asyncio.all_tasks()) > 1:
            self.ledger.found("tasks", f"{len(asyncio.all_tasks()) - 1} tasks of nobody are left behind")
