"""Saboteurs of what an outcome means for its message, and for the mail around it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import cast

from crewlet.queue import Ack, Defer, Delivery, Nak, Outcome, Subscription
from crewlet.testing.contracts import DeadLetters, Outcomes, ServingOrder
from crewlet.testing.saboteurs.queue_saboteur import OutcomeFault, QueueSaboteur

__all__ = ["OUTCOME_FAULTS"]


class FailuresAreForgotten(OutcomeFault):
    """A nak acknowledges."""

    caught_by = ServingOrder.test_a_failure_comes_back_behind_the_mail_that_was_waiting

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        return Ack() if isinstance(outcome, Nak) else outcome


class FailuresKeepTheirPlace(OutcomeFault):
    """A nak goes to the head."""

    caught_by = ServingOrder.test_a_failure_comes_back_behind_the_mail_that_was_waiting

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if not isinstance(outcome, Nak):
            return outcome
        self.tasks.start("go_on", self._go_on(subscription))
        return Defer(outcome.reason)

    async def _go_on(self, subscription: Subscription) -> None:
        await self.twin.wait_idle(subscription)
        await self.twin.unquiesce(subscription)


class DeferralsGoBehind(OutcomeFault):
    """A deferral is a nak whose attachment stops."""

    caught_by = ServingOrder.test_a_deferral_is_first_in_line_for_the_successor

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if not isinstance(outcome, Defer):
            return outcome
        await self.twin.quiesce(subscription)
        return Nak(outcome.reason)


class DeferralsFetchOn(OutcomeFault):
    """A deferral goes back, and the attachment fetches it again."""

    caught_by = Outcomes.test_a_deferral_stops_this_attachment

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if isinstance(outcome, Defer):
            self.tasks.start("go_on", self._go_on(subscription))
        return outcome

    async def _go_on(self, subscription: Subscription) -> None:
        await self.twin.wait_idle(subscription)
        await self.twin.unquiesce(subscription)


class DeferralsAreRepublished(OutcomeFault):
    """A deferral is a new message at the tail."""

    caught_by = Outcomes.test_a_deferral_is_the_same_message_and_no_copy

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if not isinstance(outcome, Defer):
            return outcome
        await self.twin.quiesce(subscription)
        for delivery in deliveries:
            await self.twin.publish(subscription.topic, replace(delivery.event, id=f"{delivery.event.id}-again"))
        return Ack()


class DeferralsWaitForTheAckClock(OutcomeFault):
    """A deferral is kept until the clock runs out."""

    caught_by = ServingOrder.test_a_deferral_is_handed_over_at_once

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if isinstance(outcome, Defer):
            await asyncio.sleep(2.0)
        return outcome


class SilenceFails(OutcomeFault):
    """A handler that says nothing has failed."""

    caught_by = Outcomes.test_silence_acknowledges

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        return cast("Outcome | None", await answer) or Nak("nothing said")


class FaultsAcknowledge(OutcomeFault):
    """A handler that raises is done."""

    caught_by = Outcomes.test_an_exception_is_a_failure

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        try:
            return await answer
        except RuntimeError:
            return Ack()


class CancellationsHang(OutcomeFault):
    """A cancellation inside a handler ends the attachment's work."""

    caught_by = Outcomes.test_a_cancellation_inside_the_handler_is_a_failure_of_that_message

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        try:
            return await answer
        except asyncio.CancelledError:
            await asyncio.Event().wait()
            raise


class AcksAreLost(OutcomeFault):
    """What is done comes again."""

    caught_by = Outcomes.test_an_acknowledged_message_is_gone

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        return Nak("lost") if isinstance(outcome, Ack) else outcome


class DeferralsAreForGood(OutcomeFault):
    """An attachment that deferred is deaf from then on."""

    caught_by = Outcomes.test_an_attachment_that_deferred_fetches_again_when_it_is_told_to

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if isinstance(outcome, Defer):
            await self.twin.hold(subscription, "for good")
        return outcome


class FailuresStopTheMailbox(OutcomeFault):
    """Nothing is served behind a failure until it is settled, and then nothing more."""

    caught_by = DeadLetters.test_mail_behind_poison_is_worked

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        if isinstance(outcome, Nak):
            await self.twin.quiesce(subscription)
        return outcome


class FailuresSpread(OutcomeFault):
    """What failed in one group fails in the others."""

    caught_by = DeadLetters.test_poison_of_one_group_is_not_another_groups

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        outcome = await answer
        about = (subscription.topic, deliveries[0].event)
        if isinstance(outcome, Nak):
            self.shared.published.append(about)
        return Nak("failed elsewhere") if about in self.shared.published else outcome


OUTCOME_FAULTS: tuple[type[QueueSaboteur], ...] = (
    FailuresAreForgotten,
    FailuresKeepTheirPlace,
    DeferralsGoBehind,
    DeferralsFetchOn,
    DeferralsAreRepublished,
    DeferralsWaitForTheAckClock,
    SilenceFails,
    FaultsAcknowledge,
    CancellationsHang,
    AcksAreLost,
    DeferralsAreForGood,
    FailuresStopTheMailbox,
    FailuresSpread,
)
