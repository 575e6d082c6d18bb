"""Saboteurs of the delivery budget: what is left of it, and what its end means."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from crewlet.queue import Ack, Defer, Delivery, Handler, Nak, Outcome, Subscription
from crewlet.testing.contracts import DeadLetters, Headroom
from crewlet.testing.saboteurs.queue_saboteur import OutcomeFault, QueueSaboteur

__all__ = ["BUDGET_FAULTS"]


class PoisonIsDropped(OutcomeFault):
    """A failure of the last delivery acknowledges."""

    caught_by = DeadLetters.test_a_failure_of_the_last_delivery_leaves_one_copy_and_nothing_else

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        try:
            outcome = await answer
        except RuntimeError:
            outcome = Nak()
        return Ack() if isinstance(outcome, Nak) and deliveries[0].headroom == 0 else outcome


class LastDeferralsAreDropped(OutcomeFault):
    """A deferral of the last delivery acknowledges."""

    caught_by = DeadLetters.test_a_deferral_of_the_last_delivery_leaves_one_copy_too

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        return Ack() if isinstance(outcome, Defer) and deliveries[0].headroom == 0 else outcome


class LastSuccessesAreBuried(OutcomeFault):
    """The last delivery is buried whatever its handler says."""

    caught_by = DeadLetters.test_a_success_on_the_last_delivery_leaves_no_copy

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        return Nak("spent") if deliveries[0].headroom == 0 else outcome


class BudgetIsOneShort(OutcomeFault):
    """The last delivery never reaches its handler."""

    caught_by = DeadLetters.test_hand_overs_spend_the_same_budget_as_failures

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        async def between(delivery: Delivery) -> Outcome:
            return await handler(delivery) if delivery.headroom else Nak("spent")

        await self.twin.subscribe(subscription, between)


class HeadroomCountsDeliveries(OutcomeFault):
    """Headroom in the broker's own counting, off by one."""

    caught_by = Headroom.test_it_counts_down_to_zero_on_the_last_delivery

    def handed(self, delivery: Delivery) -> Delivery:
        return replace(delivery, headroom=delivery.headroom + 1)


class HeadroomIsForgotten(OutcomeFault):
    """Headroom that begins anew for each attachment."""

    caught_by = Headroom.test_it_travels_with_the_message_to_a_successor

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        first: dict[str, int] = {}

        async def between(delivery: Delivery) -> Outcome:
            spent = first.setdefault(delivery.event.id, delivery.headroom) - delivery.headroom
            return await handler(replace(delivery, headroom=3 - spent))

        await self.twin.subscribe(subscription, between)


class HeadroomIsTheMailboxs(OutcomeFault):
    """Every message is told the least headroom that was ever seen."""

    caught_by = Headroom.test_each_message_has_its_own

    def handed(self, delivery: Delivery) -> Delivery:
        self._least = min(getattr(self, "_least", delivery.headroom), delivery.headroom)
        return replace(delivery, headroom=self._least)


BUDGET_FAULTS: tuple[type[QueueSaboteur], ...] = (
    PoisonIsDropped,
    LastDeferralsAreDropped,
    LastSuccessesAreBuried,
    BudgetIsOneShort,
    HeadroomCountsDeliveries,
    HeadroomIsForgotten,
    HeadroomIsTheMailboxs,
)
