"""What a step of the plan does to the clients of a run, and what the ledger must know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import cast

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.base.clock import Clock
from crewlet.events import Event
from crewlet.queue import BatchOptions, Subscription
from crewlet.testing.simulation.asides import Asides
from crewlet.testing.simulation.checkers import Checker
from crewlet.testing.simulation.company import Attached, Client, Fault, SimulatedQueue
from crewlet.testing.simulation.handlers import Hands, Script
from crewlet.testing.simulation.ledger import Ledger
from crewlet.testing.simulation.mail_view import Place
from crewlet.testing.simulation.order_checkers import key_of
from crewlet.testing.simulation.plan import Aside, Attach, Plan, Publish, Step, Touch, Verb
from crewlet.testing.simulation.publishing import Publishing

__all__ = ["Actors"]


class Actors:
    """The clients of a run; what is asked of one that is dead does not happen."""

    def __init__(
        self, plan: Plan, fault: Fault, broker: MemoryBroker, clock: Clock, ledger: Ledger, checkers: Sequence[Checker]
    ) -> None:
        self.script = Script()
        self.ledger = ledger
        self.twins: list[MemoryQueue] = []
        self._plan = plan
        self._broker = broker
        self._clock = clock
        self._checkers = checkers
        self._wrap: Callable[[MemoryQueue], object] = fault.sabotage(broker) if fault.sabotage else lambda twin: twin
        self._queues: list[SimulatedQueue] = []
        self._publishing = Publishing(ledger)
        self._asides = Asides(plan.mailboxes, clock, ledger, self._publishing)
        self.clients = [self.client(f"n{number}") for number in range(plan.clients)]

    async def take(self, step: Step) -> None:
        """Do what the step says. Raises ``Unavailable`` where a client that is cut off was to reach the broker."""
        match step:
            case Publish():
                await self._publish(self.clients[step.client], step)
            case Attach():
                await self.attach(self.clients[step.client], self._plan.mailboxes[step.mailbox], step)
            case Touch(verb=Verb.CRASH | Verb.RETURN | Verb.CUT | Verb.HEAL):
                self._touch_client(step.verb, step.client)
            case Touch():
                await self._touch(self.clients[step.client], self._plan.mailboxes[step.mailbox], step)
            case Aside():
                await self._asides.take(self.clients[step.client], step)

    async def _publish(self, client: Client, step: Publish) -> None:
        if client.crashed:
            return
        self.script.write(step.event_id, step.acts)
        self.ledger.trace.add(f"{client.node} publishes {step.event_id} of key {step.key} to {step.topic}")
        is_new = (step.topic, step.event_id) not in self._publishing.stored
        stamped = await self._publishing.publish(client, step.topic, self._event(step))
        self.ledger.counts["publishes"] += 1
        self.ledger.counts["repeats"] += not is_new
        if not is_new:
            return
        self._asides.side_mailboxes.published(step.topic, step.event_id)
        for mailbox in self._plan.mailboxes:
            if mailbox.topic == step.topic:
                self.ledger.published[mailbox, step.event_id] = stamped
                self.ledger.published_ids[mailbox].add(step.event_id)
                self.ledger.published_at_s[mailbox, step.event_id] = self.ledger.now_s()

    def _event(self, step: Publish) -> Event:
        """The event of the step; of some that were published before, as it was relayed with its publisher's name."""
        before = next((event for (_, known), event in self.ledger.published.items() if known == step.event_id), None)
        if before is not None and int(step.event_id[1:]) % 2:
            return before
        stamped_at = self._clock.now() + timedelta(seconds=step.stamp_s - self.ledger.now_s())
        return Event(id=step.event_id, type="simulated", timestamp=stamped_at, payload={"key": step.key})

    async def attach(self, client: Client, mailbox: Subscription, step: Attach) -> None:
        """Attach, as a successor where somebody vanished; a second time it must be refused."""
        if client.crashed:
            return
        if mailbox in client.attached:
            await self._attach_again(client, mailbox)
            return
        if self._plan.seats:
            await self._move_away(mailbox)
        if self._has_lapsed(mailbox):
            await self._release(client, mailbox)
        held = {(place.event_id, place.deliveries) for place in self._held_by(client, mailbox)}
        holds = client.early_holds.get(mailbox, set())
        attached = Attached(client, mailbox, step.hauls, step.options, frozenset(held), {*holds})
        attached.changed_at_s = self.ledger.now_s()
        hands = Hands(attached, self.script, self.ledger, self._checkers)
        self.ledger.trace.add(f"{client.node} attaches to {mailbox.topic} ({mailbox.group}){' in hauls' * step.hauls}")
        if step.hauls:
            await client.queue.subscribe_batch(mailbox, hands.batch, partition=key_of, options=lambda: attached.options)
        else:
            await client.queue.subscribe(mailbox, hands.one)
        client.early_holds.pop(mailbox, None)
        client.attached[mailbox] = attached
        self.ledger.attach(attached)
        self.ledger.counts["attaches"] += 1

    async def _attach_again(self, client: Client, mailbox: Subscription) -> None:
        intruder = Attached(client, mailbox, hauls=False, options=BatchOptions(), began_with=frozenset(), holds=set())
        intruder.closed_at_s = self.ledger.now_s()
        hands = Hands(intruder, self.script, self.ledger, self._checkers)
        try:
            await client.queue.subscribe(mailbox, hands.one)
        except ValueError:
            return
        self.ledger.found("stopped", f"{client.node} was attached to {mailbox.topic} twice")

    async def _move_away(self, mailbox: Subscription) -> None:
        for client in self.clients:
            if client.is_heard and mailbox in client.attached:
                self.ledger.trace.add(f"{client.node} lets go of {mailbox.topic} ({mailbox.group})")
                await self._detach(client, mailbox)

    def _has_lapsed(self, mailbox: Subscription) -> bool:
        """Whether somebody who vanished holds mail, and nobody who is heard of works the mailbox."""
        heard = {client.node for client in self.clients if client.is_heard}
        if any(client.is_heard and mailbox in client.attached for client in self.clients):
            return False
        held = [place for place in self.ledger.view.places(mailbox) if place.holder is not None]
        return bool(held) and all(place.holder not in heard for place in held)

    async def _release(self, client: Client, mailbox: Subscription) -> None:
        before = {
            place.event_id: (place.deliveries, place.holder)
            for place in self.ledger.view.places(mailbox)
            if place.holder is not None
        }
        if client.is_heard:
            for checker in self._checkers:
                checker.releasing(mailbox)
            for other in self.clients:
                if attached := other.attached.get(mailbox):
                    self.ledger.mark_lost(attached)
            for handling in self.ledger.running:
                if handling.mailbox == mailbox:
                    self.ledger.mark_lost(handling.attached)
        self.ledger.trace.add(f"{client.node} releases what was held of {mailbox.topic} ({mailbox.group})")
        await client.queue.release_held(mailbox)
        self.ledger.counts["releases"] += 1
        for event_id, place in self.ledger.view.by_id(mailbox).items():
            if before.get(event_id) == (place.deliveries, place.holder):
                self.ledger.found("order", f"{event_id} is held by {place.holder} still, which was released")

    async def _touch(self, client: Client, mailbox: Subscription, step: Touch) -> None:
        if client.crashed:
            return
        attached = client.attached.get(mailbox)
        hold = f" {step.hold}" if step.verb in {Verb.HOLD, Verb.LIFT} else ""
        self.ledger.trace.add(f"{client.node} {step.verb}{hold} {mailbox.topic} ({mailbox.group})")
        self.ledger.counts[str(step.verb)] += 1
        match step.verb:
            case Verb.HOLD:
                await client.queue.hold(mailbox, step.hold)
                holds = attached.holds if attached else client.early_holds.setdefault(mailbox, set())
                holds.add(step.hold)
            case Verb.LIFT:
                (attached.holds if attached else client.early_holds.get(mailbox, set())).discard(step.hold)
                self._asks_anew(attached)
                await client.queue.lift(mailbox, step.hold)
            case Verb.QUIESCE:
                await client.queue.quiesce(mailbox)
                if attached:
                    attached.quiesced = True
            case Verb.UNQUIESCE:
                if attached:
                    attached.quiesced = False
                self._asks_anew(attached)
                await client.queue.unquiesce(mailbox)
            case _:
                await self._detach(client, mailbox)

    def _asks_anew(self, attached: Attached | None) -> None:
        if attached:
            attached.changed_at_s = self.ledger.now_s()

    async def _detach(self, client: Client, mailbox: Subscription) -> None:
        client.early_holds.pop(mailbox, None)
        if attached := client.attached.pop(mailbox, None):
            attached.closed_at_s = self.ledger.now_s()
        await client.queue.detach(mailbox)

    def _touch_client(self, verb: Verb, number: int) -> None:
        client = self.clients[number]
        match verb:
            case Verb.CRASH if not client.crashed:
                self._crash(client)
            case Verb.RETURN if client.crashed:
                self.clients[number] = self.client(f"{client.node}+")
            case Verb.CUT if client.is_heard:
                client.cut_at_s = self.ledger.now_s()
                client.queue.cut()
            case Verb.HEAL if not client.crashed and client.cut_at_s is not None:
                self.heal(client)
            case _:
                return
        self.ledger.trace.add(f"{client.node} {verb}")
        self.ledger.counts[str(verb)] += 1

    def _crash(self, client: Client) -> None:
        client.crashed = True
        for attached in client.attached.values():
            attached.closed_at_s = self.ledger.now_s()
        client.attached.clear()
        client.queue.crash()
        self._publishing.ends(client)
        self._asides.questions.ends(client)

    def heal(self, client: Client) -> None:
        """It is heard of again; what it lost meanwhile is remembered."""
        lost = [one for one in self._attached_of(client) if self.ledger.may_have_lost(one)]
        for attached in lost:
            self.ledger.mark_lost(attached)
        client.cut_at_s = None
        client.healed_at_s = self.ledger.now_s()
        for attached in client.attached.values():
            self._asks_anew(attached)
        client.queue.heal()
        self._publishing.healed(client)

    def _attached_of(self, client: Client) -> list[Attached]:
        """Its attachments, and those that it let go of and whose handler still runs."""
        running = [handling.attached for handling in self.ledger.running if handling.attached.client is client]
        return [*client.attached.values(), *running]

    def _held_by(self, client: Client, mailbox: Subscription) -> list[Place]:
        return [place for place in self.ledger.view.places(mailbox) if place.holder == client.node]

    async def close_all(self) -> None:
        """Close every client, the dead ones too."""
        for queue in self._queues:
            await queue.close()

    def client(self, node: str) -> Client:
        """A process that begins now."""
        twin = MemoryQueue(self._broker, node=node, config=self._plan.config)
        self.twins.append(twin)
        queue = cast("SimulatedQueue", self._wrap(twin))
        self._queues.append(queue)
        client = Client(node, queue)
        self._publishing.begins(client)
        return client
