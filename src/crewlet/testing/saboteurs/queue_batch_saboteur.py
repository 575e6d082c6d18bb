"""What saboteurs of batches have in common."""

from __future__ import annotations

from collections.abc import Callable

from crewlet.queue import Batch, BatchHandler, BatchOptions, Outcome, PartitionKey, Subscription, partitions_of
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur

__all__ = ["BatchFault", "Options", "WholeHaulFault"]

Options = Callable[[], BatchOptions]


class BatchFault(QueueSaboteur):
    """A saboteur that changes what a batch attachment asks for."""

    def key(self, partition: PartitionKey) -> PartitionKey:
        return partition

    def window(self, options: Options) -> Options:
        return options

    def worked(self, subscription: Subscription, handler: BatchHandler, options: Options) -> BatchHandler:
        return handler

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Options = BatchOptions,
    ) -> None:
        between = self.worked(subscription, handler, options)
        await self.twin.subscribe_batch(
            subscription, between, partition=self.key(partition), options=self.window(options)
        )


class WholeHaulFault(QueueSaboteur):
    """A saboteur that takes a haul whole and works its partitions in its own way, under one outcome."""

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Options = BatchOptions,
    ) -> None:
        async def between(haul: Batch) -> Outcome:
            return await self.worked(partitions_of(subscription, haul.deliveries, partition), handler)

        await self.twin.subscribe_batch(subscription, between, partition=lambda _: "all", options=options)

    async def worked(self, batches: list[Batch], handler: BatchHandler) -> Outcome:
        raise NotImplementedError
