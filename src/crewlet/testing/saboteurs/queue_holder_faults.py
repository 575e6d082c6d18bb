"""Saboteurs of who holds what: fetching ahead, sharing a mailbox, the ack clock, the take-over from a dead holder."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from crewlet.queue import Batch, BatchOptions, Defer, Delivery, Handler, Outcome, Subscription
from crewlet.testing.contracts import ServingOrder, TakeOver
from crewlet.testing.saboteurs.queue_saboteur import OutcomeFault, QueueSaboteur

__all__ = ["HOLDER_FAULTS"]


class FetchesAhead(QueueSaboteur):
    """While one message is worked the next is held already."""

    caught_by = ServingOrder.test_nothing_is_fetched_while_a_handler_works

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        async def one(batch: Batch) -> Outcome:
            return await handler(batch.deliveries[0])

        options = BatchOptions(linger_s=0.1, max_events=2)
        await self.twin.subscribe_batch(subscription, one, partition=lambda event: event.id, options=lambda: options)


class TheFirstAttachmentIsTheOnly(QueueSaboteur):
    """Who attaches later is served nothing while the first is there."""

    caught_by = ServingOrder.test_two_attachments_of_one_group_share_the_mail

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        await self.twin.subscribe(subscription, handler)
        if self.shared.clients[0] is not self:
            await self.twin.quiesce(subscription)


class SuccessorsDoNotWait(QueueSaboteur):
    """Whoever attaches takes what others hold."""

    caught_by = ServingOrder.test_what_a_dead_holder_had_is_nobody_elses_until_its_clock_runs_out

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        await self.twin.release_held(subscription)
        await self.twin.subscribe(subscription, handler)


class ClocksAreNotExtended(OutcomeFault):
    """The ack clock of a handler at work runs out."""

    caught_by = ServingOrder.test_a_handler_that_outlasts_the_ack_clock_keeps_its_message

    def handed(self, delivery: Delivery) -> Delivery:
        self.tasks.start("clock", self._run_out(delivery.subscription))
        return delivery

    async def _run_out(self, subscription: Subscription) -> None:
        await asyncio.sleep(3.0)
        for other in self.shared.clients:
            if other is not self:
                await other.twin.release_held(subscription)


class OneClockForAll(QueueSaboteur):
    """Every mailbox has the same ack clock."""

    caught_by = ServingOrder.test_a_mailbox_with_a_clock_of_its_own_gives_back_by_that

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        await self.twin.subscribe(Subscription(subscription.topic, f"{subscription.group}-slow"), handler)


class OwnClocksAreNotExtended(OutcomeFault):
    """A handler at work loses its message to a clock that is its mailbox's own."""

    caught_by = ServingOrder.test_a_handler_that_outlasts_a_clock_of_its_mailboxs_own_keeps_its_message

    def handed(self, delivery: Delivery) -> Delivery:
        self.tasks.start("clock", self._run_out(delivery.subscription))
        return delivery

    async def _run_out(self, subscription: Subscription) -> None:
        await asyncio.sleep(1.0)
        for other in self.shared.clients:
            if other is not self:
                await other.twin.release_held(subscription)


class ReleaseDoesNothing(QueueSaboteur):
    """A dead holder's mail waits for the ack clock."""

    caught_by = TakeOver.test_what_a_dead_holder_had_comes_back_at_once_and_first

    async def release_held(self, subscription: Subscription) -> None:
        """Nothing."""


class ReleaseIsFree(OutcomeFault):
    """A release costs no delivery."""

    caught_by = TakeOver.test_a_release_costs_what_was_held_one_delivery_and_the_rest_none

    def handed(self, delivery: Delivery) -> Delivery:
        return replace(delivery, headroom=3)


class ReleaseTakesAll(OutcomeFault):
    """A release costs the waiting mail a delivery too."""

    caught_by = TakeOver.test_releasing_where_nothing_is_held_changes_nothing

    async def release_held(self, subscription: Subscription) -> None:
        async def touches(delivery: Delivery) -> Outcome:
            return Defer("released")

        await self.twin.release_held(subscription)
        await self.twin.subscribe(subscription, touches)
        await asyncio.sleep(0.1)
        await self.twin.detach(subscription)


class ReleaseCostsTwo(ReleaseTakesAll):
    """What was held comes back two deliveries dearer."""

    caught_by = TakeOver.test_a_released_message_may_be_on_its_last_delivery


HOLDER_FAULTS: tuple[type[QueueSaboteur], ...] = (
    FetchesAhead,
    TheFirstAttachmentIsTheOnly,
    SuccessorsDoNotWait,
    ClocksAreNotExtended,
    OneClockForAll,
    OwnClocksAreNotExtended,
    ReleaseDoesNothing,
    ReleaseIsFree,
    ReleaseTakesAll,
    ReleaseCostsTwo,
)
