"""Faults that the simulation has to find: each breaks one promise of the broker, or of a client, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from crewlet import topics
from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.backends.memory.queue_mail import Burial, Held
from crewlet.queue import Delivery, EventQueue, Nak, Outcome, Subscription
from crewlet.testing.saboteurs import QueueSaboteur
from crewlet.testing.saboteurs.queue_saboteur import OutcomeFault, Shared
from crewlet.testing.simulation.company import Fault

__all__ = ["SIMULATED_FAULTS", "fault_of"]


class _ForgetfulBroker(MemoryBroker):
    """A repeat is a message again."""

    def store(self, topic: str, payload: bytes, *, message_id: str = "", burial: Burial | None = None) -> None:
        super().store(topic, payload, burial=burial)


class _AtTheBroker(OutcomeFault):
    """A saboteur that reaches into the broker."""

    def __init__(self, twin: MemoryQueue, shared: Shared, broker: MemoryBroker) -> None:
        super().__init__(twin, shared)
        self.broker = broker


class _LosesOnCrash(_AtTheBroker):
    """What a killed process held is gone with it."""

    def crash(self) -> None:
        self.twin.crash()
        for subscription in self.broker.mailboxes():
            mailbox = self.broker.mailbox(subscription)
            assert mailbox is not None
            for mail in self.broker.held(subscription):
                if mail.holder == self.twin.node:
                    mailbox.acknowledge(Held(mail, _Nobody(), 0.0))


class _GivesOutTwice(_AtTheBroker):
    """What a live holder works is given to the next who asks."""

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        if mailbox := self.broker.mailbox(subscription):
            asyncio.get_running_loop().call_soon(mailbox.release_held)
        return await answer


class _BuriesTwice(_AtTheBroker):
    """A message that has spent its budget leaves two letters."""

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if isinstance(outcome, Nak):
            for mail in self.broker.held(subscription):
                spent = any(each.headroom == 0 and each.event == mail.message.event for each in deliveries)
                if spent and mail.holder == self.twin.node:
                    message = mail.message
                    note = Burial(subscription, message.stream, message.sequence, mail.deliveries, "again")
                    topic = topics.dead_letter(subscription.topic, subscription.group)
                    self.broker.store(topic, message.payload, burial=note)
        return outcome


class _Nobody:
    """Holds nothing and hears nothing."""

    node = ""

    def wake(self) -> None:
        """Nothing."""

    def mailbox_deleted(self) -> None:
        """Nothing."""


def fault_of(kind: type[QueueSaboteur]) -> Fault:
    """A saboteur of the queue's suite as a fault of a run."""

    def sabotage(_: MemoryBroker) -> Callable[[MemoryQueue], EventQueue]:
        shared = Shared()
        return lambda twin: cast("EventQueue", kind(twin, shared))

    return Fault(kind.__name__, sabotage=sabotage)


def _at_the_broker(name: str, kind: type[_AtTheBroker]) -> Fault:
    def sabotage(broker: MemoryBroker) -> Callable[[MemoryQueue], EventQueue]:
        shared = Shared()
        return lambda twin: cast("EventQueue", kind(twin, shared, broker))

    return Fault(name, sabotage=sabotage)


SIMULATED_FAULTS: tuple[Fault, ...] = (
    _at_the_broker("a crash loses what was held", _LosesOnCrash),
    _at_the_broker("a message is given out twice", _GivesOutTwice),
    _at_the_broker("a message is buried twice", _BuriesTwice),
    Fault("repeats are stored", broker=_ForgetfulBroker),
)
"""Faults that no client can play: they need the broker's hand."""
