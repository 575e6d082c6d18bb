"""Saboteurs of what a haul takes, and of the order in which it is worked."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from crewlet.queue import (
    Ack,
    Batch,
    BatchHandler,
    BatchOptions,
    Outcome,
    PartitionKey,
    Subscription,
)
from crewlet.testing.contracts import BatchCollection
from crewlet.testing.saboteurs.queue_batch_saboteur import BatchFault, Options, WholeHaulFault
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur

__all__ = ["BATCH_FAULTS"]


class KeysAreIgnored(BatchFault):
    """All of a haul is one partition."""

    caught_by = BatchCollection.test_what_waits_is_taken_whole_and_cut_by_the_callers_key

    def key(self, partition: PartitionKey) -> PartitionKey:
        return lambda _: "all"


class HaulsAreSingle(BatchFault):
    """A haul takes one message."""

    caught_by = BatchCollection.test_what_waits_is_taken_whole_and_cut_by_the_callers_key

    def window(self, options: Options) -> Options:
        return lambda: replace(options(), max_events=1)


class NewestConversationFirst(WholeHaulFault):
    """Partitions are worked the wrong way round."""

    caught_by = BatchCollection.test_the_oldest_conversation_is_worked_first

    async def worked(self, batches: list[Batch], handler: BatchHandler) -> Outcome:
        for batch in reversed(batches):
            await handler(batch)
        return Ack()


class ArrivalDecides(BatchFault):
    """Inside a partition the timestamps are not looked at."""

    caught_by = BatchCollection.test_inside_a_partition_the_events_own_timestamps_decide

    def worked(self, subscription: Subscription, handler: BatchHandler, options: Options) -> BatchHandler:
        async def between(batch: Batch) -> Outcome:
            return await handler(replace(batch, deliveries=batch.deliveries[::-1]))

        return between


class NoCap(BatchFault):
    """A haul takes whatever waits."""

    caught_by = BatchCollection.test_a_haul_takes_no_more_than_its_cap

    def window(self, options: Options) -> Options:
        return lambda: replace(options(), max_events=100)


class NoLinger(BatchFault):
    """A haul does not wait for company."""

    caught_by = BatchCollection.test_arrivals_inside_the_linger_window_join_the_haul

    def window(self, options: Options) -> Options:
        return lambda: replace(options(), linger_s=0.0)


class TheWindowIsDoubled(BatchFault):
    """The window goes on after each arrival."""

    caught_by = BatchCollection.test_the_window_counts_from_the_first_message_and_not_from_the_last

    def window(self, options: Options) -> Options:
        return lambda: replace(options(), linger_s=2 * options().linger_s)


class FullHaulsWait(BatchFault):
    """The window is waited out whatever happens."""

    caught_by = BatchCollection.test_a_full_haul_does_not_wait_out_its_window

    def worked(self, subscription: Subscription, handler: BatchHandler, options: Options) -> BatchHandler:
        async def between(batch: Batch) -> Outcome:
            await asyncio.sleep(options().linger_s)
            return await handler(batch)

        return between


class OptionsAreAskedOnce(BatchFault):
    """A changed window is not noticed."""

    caught_by = BatchCollection.test_changed_options_hold_from_the_next_haul_on

    def window(self, options: Options) -> Options:
        first = options()
        return lambda: first


class AFailingKeyJoinsTheOthers(BatchFault):
    """Events without a key share the partition of those with one."""

    caught_by = BatchCollection.test_an_event_whose_key_cannot_be_told_is_worked_alone

    def key(self, partition: PartitionKey) -> PartitionKey:
        return lambda event: str(event.payload.get("talk", "a"))


class ASecondAttachIsTaken(QueueSaboteur):
    """Attaching twice detaches what was there."""

    caught_by = BatchCollection.test_a_second_attach_of_one_process_is_refused

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Options = BatchOptions,
    ) -> None:
        await self.twin.detach(subscription)
        await self.twin.subscribe_batch(subscription, handler, partition=partition, options=options)


BATCH_FAULTS: tuple[type[QueueSaboteur], ...] = (
    KeysAreIgnored,
    HaulsAreSingle,
    NewestConversationFirst,
    ArrivalDecides,
    NoCap,
    NoLinger,
    TheWindowIsDoubled,
    FullHaulsWait,
    OptionsAreAskedOnce,
    AFailingKeyJoinsTheOthers,
    ASecondAttachIsTaken,
)
