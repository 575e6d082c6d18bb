"""Saboteurs of what becomes of a haul: what its outcomes mean, and what stops it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from crewlet.events import Event
from crewlet.queue import (
    Ack,
    Batch,
    BatchHandler,
    BatchOptions,
    Defer,
    Delivery,
    Nak,
    Outcome,
    PartitionKey,
    Subscription,
)
from crewlet.testing.contracts import BatchSettlement, BatchStops
from crewlet.testing.saboteurs.queue_batch_saboteur import BatchFault, Options, WholeHaulFault
from crewlet.testing.saboteurs.queue_saboteur import OutcomeFault, QueueSaboteur

__all__ = ["HAUL_FAULTS"]


class AcknowledgedTogether(WholeHaulFault):
    """Nothing is acknowledged before the whole haul was worked."""

    caught_by = BatchSettlement.test_partitions_are_worked_one_after_another_and_acknowledged_after_their_call

    async def worked(self, batches: list[Batch], handler: BatchHandler) -> Outcome:
        for batch in batches:
            await handler(batch)
        return Ack()


class OneFailureFailsAll(WholeHaulFault):
    """A failing partition hands the whole haul back."""

    caught_by = BatchSettlement.test_a_failing_partition_hands_back_exactly_its_own

    async def worked(self, batches: list[Batch], handler: BatchHandler) -> Outcome:
        failed = False
        for batch in batches:
            try:
                failed |= isinstance(await handler(batch), Nak)
            except RuntimeError:
                failed = True
        return Nak() if failed else Ack()


class ThePartitionsHeadroomIsEverybodys(BatchFault):
    """Each message is told the least of its partition."""

    caught_by = BatchSettlement.test_a_partition_of_mixed_counts_tells_the_smallest_and_each_messages_own

    def worked(self, subscription: Subscription, handler: BatchHandler, options: Options) -> BatchHandler:
        async def between(batch: Batch) -> Outcome:
            same = tuple(replace(delivery, headroom=batch.headroom) for delivery in batch.deliveries)
            return await handler(replace(batch, deliveries=same))

        return between


class OneSpentBuriesAll(BatchFault):
    """A failing partition with a spent message brings nothing back."""

    caught_by = BatchSettlement.test_a_failing_partition_buries_what_is_spent_and_brings_the_rest_back

    def worked(self, subscription: Subscription, handler: BatchHandler, options: Options) -> BatchHandler:
        async def between(batch: Batch) -> Outcome:
            outcome = await handler(batch)
            return Ack() if isinstance(outcome, Nak) and batch.headroom == 0 else outcome

        return between


class HoldsLetACollectionFinish(QueueSaboteur):
    """A stop during a collection flushes it to the handler first."""

    caught_by = BatchStops.test_a_hold_during_the_collection_hands_the_whole_haul_back

    async def hold(self, subscription: Subscription, name: str) -> None:
        await asyncio.sleep(2.5)
        await self.twin.hold(subscription, name)


class QuiesceLetsACollectionFinish(QueueSaboteur):
    """A stop during a collection flushes it to the handler first."""

    caught_by = BatchStops.test_a_quiesce_during_the_collection_hands_the_whole_haul_back

    async def quiesce(self, subscription: Subscription) -> None:
        await asyncio.sleep(2.5)
        await self.twin.quiesce(subscription)


class DetachLosesACollection(QueueSaboteur):
    """A detach during a collection leaves it to the ack clock."""

    caught_by = BatchStops.test_a_detach_during_the_collection_hands_the_whole_haul_back

    async def detach(self, subscription: Subscription) -> None:
        await asyncio.sleep(2.5)
        await self.twin.detach(subscription)


class DeferralsStopNothing(BatchFault):
    """After a deferral the rest of the haul is worked."""

    caught_by = BatchStops.test_a_deferral_hands_back_its_partition_and_those_not_worked_yet

    def worked(self, subscription: Subscription, handler: BatchHandler, options: Options) -> BatchHandler:
        async def between(batch: Batch) -> Outcome:
            outcome = await handler(batch)
            return Nak() if isinstance(outcome, Defer) else outcome

        return between


class HoldsWaitForTheHaul(QueueSaboteur):
    """A hold between two partitions is in force after the last."""

    caught_by = BatchStops.test_a_hold_between_two_partitions_stops_the_haul

    async def hold(self, subscription: Subscription, name: str) -> None:
        self.tasks.start("hold", self._hold(subscription, name))

    async def _hold(self, subscription: Subscription, name: str) -> None:
        await asyncio.sleep(0.05)
        await self.twin.hold(subscription, name)


class DetachWaitsForTheHaul(QueueSaboteur):
    """A detach between two partitions ends the attachment after the last."""

    caught_by = BatchStops.test_a_detach_between_two_partitions_stops_the_haul

    async def detach(self, subscription: Subscription) -> None:
        self.tasks.start("detach", self._detach(subscription))

    async def _detach(self, subscription: Subscription) -> None:
        await asyncio.sleep(0.05)
        await self.twin.detach(subscription)


class StopsAreFree(OutcomeFault):
    """What goes back in a stop keeps its delivery."""

    caught_by = BatchStops.test_what_is_spent_when_a_haul_stops_is_buried

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Options = BatchOptions,
    ) -> None:
        def with_room(event: Event) -> str:
            key = partition(event)
            return "a" if key == "b" else key

        await super().subscribe_batch(subscription, handler, partition=with_room, options=options)

    def handed(self, delivery: Delivery) -> Delivery:
        return replace(delivery, headroom=3)


HAUL_FAULTS: tuple[type[QueueSaboteur], ...] = (
    AcknowledgedTogether,
    OneFailureFailsAll,
    ThePartitionsHeadroomIsEverybodys,
    OneSpentBuriesAll,
    HoldsLetACollectionFinish,
    QuiesceLetsACollectionFinish,
    DetachLosesACollection,
    DeferralsStopNothing,
    HoldsWaitForTheHaul,
    DetachWaitsForTheHaul,
    StopsAreFree,
)
