"""Saboteurs of what is told of buried mail that no handler speaks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crewlet.queue import (
    Batch,
    BatchHandler,
    BatchOptions,
    Outcome,
    PartitionKey,
    Subscription,
    UnheardLetter,
    UnheardListener,
)
from crewlet.testing.contracts import UnheardLetters
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur

__all__ = ["UNHEARD_FAULTS"]


def _nothing() -> None:
    pass


class NobodyIsTold(QueueSaboteur):
    """Whoever listens hears nothing."""

    caught_by = UnheardLetters.test_what_is_spent_behind_a_deferral_is_told

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        return _nothing


class ADetachIsSilent(QueueSaboteur):
    """Nothing is told once the attachment is gone."""

    caught_by = UnheardLetters.test_what_is_spent_when_its_haul_ends_with_a_detach_is_told

    _silent = False

    async def detach(self, subscription: Subscription) -> None:
        self._silent = True
        await self.twin.detach(subscription)

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        self._silent = False

        async def while_attached(letter: UnheardLetter) -> None:
            if not self._silent:
                await listener(letter)

        return self.twin.add_unheard_listener(while_attached)


class WhatWasHandedOverIsToldToo(QueueSaboteur):
    """Whatever a handler gives back on its last delivery is told as well."""

    caught_by = UnheardLetters.test_of_what_a_handler_was_given_nobody_else_is_told

    _listener: UnheardListener | None = None

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        self._listener = listener
        return self.twin.add_unheard_listener(listener)

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Callable[[], BatchOptions] = BatchOptions,
    ) -> None:
        async def between(batch: Batch) -> Outcome:
            for delivery in batch.deliveries:
                if delivery.headroom == 0 and self._listener is not None:
                    await self._listener(UnheardLetter(subscription=subscription, event=delivery.event, reason=""))
            return await handler(batch)

        await self.twin.subscribe_batch(subscription, between, partition=partition, options=options)


class TheDeadAreSilent(QueueSaboteur):
    """What was lost with its holder is not told."""

    caught_by = UnheardLetters.test_what_a_holder_died_with_is_told_by_one_who_lives

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        async def of_the_living(letter: UnheardLetter) -> None:
            if not letter.holder_lost:
                await listener(letter)

        return self.twin.add_unheard_listener(of_the_living)


class ToldBeforeItIsTold(QueueSaboteur):
    """A letter counts as told once somebody has begun to."""

    caught_by = UnheardLetters.test_what_a_process_died_telling_is_told_by_another

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        async def later(letter: UnheardLetter) -> None:
            self.tasks.start("tell", _awaited(listener, letter))
            await asyncio.sleep(0)

        return self.twin.add_unheard_listener(later)


class AFaultEndsTheTelling(QueueSaboteur):
    """The next listener is not told where one failed."""

    caught_by = UnheardLetters.test_a_failing_listener_keeps_neither_the_next_nor_the_burial_from_happening

    _failed = False

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        async def unless_failed(letter: UnheardLetter) -> None:
            if self._failed:
                return
            try:
                await listener(letter)
            except RuntimeError:
                self._failed = True
                raise

        return self.twin.add_unheard_listener(unless_failed)


class UnheardListenersStay(QueueSaboteur):
    """A removed listener is told on."""

    caught_by = UnheardLetters.test_a_removed_listener_is_told_nothing_more

    def add_unheard_listener(self, listener: UnheardListener) -> Callable[[], None]:
        self.twin.add_unheard_listener(listener)
        return _nothing


async def _awaited(listener: UnheardListener, letter: UnheardLetter) -> None:
    await listener(letter)


UNHEARD_FAULTS: tuple[type[QueueSaboteur], ...] = (
    NobodyIsTold,
    ADetachIsSilent,
    WhatWasHandedOverIsToldToo,
    TheDeadAreSilent,
    ToldBeforeItIsTold,
    AFaultEndsTheTelling,
    UnheardListenersStay,
)
