"""Promises about buried mail that no handler speaks for: whoever listens is told, of that and of nothing else."""

from __future__ import annotations

import asyncio

from crewlet.queue import Ack, Batch, Defer, EventQueue, Nak, Outcome, UnheardLetter
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_batches import attach
from crewlet.testing.contracts.queue_dead_letters import buried
from crewlet.testing.contracts.queue_handlers import BatchRecorder, Busy, Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event
from crewlet.testing.waiting import wait_until

__all__ = ["UnheardLetters"]


class Told:
    """A listener that keeps what it is told; ``stays`` in it, or ``fails``, where it should."""

    def __init__(self, *, stays: bool = False, fails: bool = False) -> None:
        self.letters: list[UnheardLetter] = []
        self._stays = stays
        self._fails = fails

    @property
    def ids(self) -> list[str]:
        """The ids of the buried events, in order."""
        return [letter.event.id for letter in self.letters]

    async def __call__(self, letter: UnheardLetter) -> None:
        """Keep it."""
        self.letters.append(letter)
        if self._fails:
            raise RuntimeError("a listener's fault")
        if self._stays:
            await asyncio.Event().wait()

    async def heard(self, count: int) -> None:
        """Return once it was told of so many. Raises ``TimeoutError``."""
        await wait_until(lambda: len(self.letters) >= count, what=f"{count} unheard letters", timeout_s=15.0)


class UnheardLetters(Contract):
    """Giving up is never silent, whoever had the message in his hands."""

    async def test_what_is_spent_behind_a_deferral_is_told(self, queue: QueueHarness) -> None:
        client, told = await with_one_delivery_left(queue, "spent", talk="b", age=1), Told()
        client.add_unheard_listener(told)
        await client.publish(queue.inbox().topic, event("first", talk="a", age=9))

        await attach(client, queue, worked := BatchRecorder(Defer("the lease moved")))
        await told.heard(1)
        await _has_letters(queue, 1)

        assert (worked.ids, told.ids) == ([["first"]], ["spent"])
        (letter,) = told.letters
        assert (letter.subscription, letter.holder_lost) == (queue.inbox(), False)
        assert letter.reason.startswith(f"deferred on delivery {queue.config.max_deliver} of")

    async def test_what_is_spent_when_its_haul_ends_with_a_detach_is_told(self, queue: QueueHarness) -> None:
        client, told = await with_one_delivery_left(queue, "spent", talk="b", age=1), Told()
        client.add_unheard_listener(told)
        await client.publish(queue.inbox().topic, event("first", talk="a", age=9))

        async def detaches_itself(_: Batch) -> Outcome:
            await client.detach(queue.inbox())
            return Ack()

        await attach(client, queue, detaches_itself)
        await told.heard(1)

        assert told.ids == ["spent"]

    async def test_of_what_a_handler_was_given_nobody_else_is_told(self, queue: QueueHarness) -> None:
        client, told = await with_one_delivery_left(queue, "spent", talk="b", age=1), Told()
        client.add_unheard_listener(told)

        await attach(client, queue, BatchRecorder(Defer("the lease moved")))
        await buried(queue, queue.inbox())
        await queue.quiet()

        assert told.ids == []

    async def test_what_a_holder_died_with_is_told_by_one_who_lives(self, queue: QueueHarness) -> None:
        client, heir, told = await with_one_delivery_left(queue, "spent"), await queue.client("heir"), Told()
        heir.add_unheard_listener(told)
        await client.subscribe(queue.inbox(), busy := Busy())
        await busy.at_work()
        await queue.crash(client)

        await heir.release_held(queue.inbox())
        await heir.subscribe(queue.inbox(), Recorder())
        await told.heard(1)
        await buried(queue, queue.inbox())

        assert [(letter.event.id, letter.holder_lost) for letter in told.letters] == [("spent", True)]

    async def test_what_a_process_died_telling_is_told_by_another(self, queue: QueueHarness) -> None:
        client, heir = await with_one_delivery_left(queue, "spent", talk="b", age=1), await queue.client("heir")
        first, second = Told(stays=True), Told()
        client.add_unheard_listener(first)
        await client.publish(queue.inbox().topic, event("first", talk="a", age=9))
        await attach(client, queue, BatchRecorder(Defer("the lease moved")))
        await first.heard(1)
        heir.add_unheard_listener(second)

        await queue.crash(client)
        await heir.release_held(queue.inbox())
        await heir.subscribe(queue.inbox(), Recorder())
        await second.heard(1)

        assert second.ids == ["spent"]

    async def test_a_failing_listener_keeps_neither_the_next_nor_the_burial_from_happening(
        self, queue: QueueHarness
    ) -> None:
        client, told = await with_one_delivery_left(queue, "spent", talk="b", age=1), Told()
        client.add_unheard_listener(Told(fails=True))
        client.add_unheard_listener(told)
        await client.publish(queue.inbox().topic, event("first", talk="a", age=9))

        await attach(client, queue, BatchRecorder(Defer("the lease moved")))
        await told.heard(1)
        await _has_letters(queue, 1)

        assert told.ids == ["spent"]
        await wait_until(lambda: _retains(queue, 1), what="the burial")

    async def test_a_removed_listener_is_told_nothing_more(self, queue: QueueHarness) -> None:
        client, removed, stays = await with_one_delivery_left(queue, "spent", talk="b", age=1), Told(), Told()
        remove = client.add_unheard_listener(removed)
        client.add_unheard_listener(stays)
        await client.publish(queue.inbox().topic, event("first", talk="a", age=9))

        remove()
        await attach(client, queue, BatchRecorder(Defer("the lease moved")))
        await stays.heard(1)

        assert removed.ids == []


async def with_one_delivery_left(queue: QueueHarness, event_id: str, *, age: int = 0, talk: str = "a") -> EventQueue:
    """A client beside a mailbox with one message, all of whose deliveries but the last are spent; not attached."""
    client, spends = await queue.client(), queue.config.max_deliver - 1
    spending = Recorder(*[Nak()] * (spends - 1), Defer("the lease moved"))
    await client.subscribe(queue.inbox(), spending)
    await client.publish(queue.inbox().topic, event(event_id, talk=talk, age=age))
    await spending.handled(spends)
    await client.wait_idle(queue.inbox())
    await client.detach(queue.inbox())
    return client


async def _has_letters(queue: QueueHarness, count: int) -> None:
    async def there() -> bool:
        return len(await queue.dead_letters(queue.inbox())) == count

    await wait_until(there, what=f"{count} dead letters")


async def _retains(queue: QueueHarness, count: int) -> bool:
    return await queue.retained(queue.inbox().topic) == count
