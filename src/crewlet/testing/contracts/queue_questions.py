"""Promises about ephemeral questions: nothing is stored, and it is known who answered."""

from __future__ import annotations

import asyncio

from crewlet.queue import Answer, Responder
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_harness import QueueHarness

__all__ = ["Questions"]


class Questions(Contract):
    """Ephemeral questions: nothing is stored, and it is known who answered."""

    async def test_every_node_that_serves_answers_under_its_name(self, queue: QueueHarness) -> None:
        asker = await queue.client("asker")
        subject = f"{queue.namespace}.ask"
        for name in ("north", "south"):
            await (await queue.client(name)).serve(subject, _says(name))
        await queue.quiet()

        answers = await asker.scatter(subject, b"who?", timeout_s=5.0, expected=2)

        told = sorted((answer.node, answer.payload, answer.error) for answer in answers)
        assert told == [("north", b"north: who?", ""), ("south", b"south: who?", "")]

    async def test_who_asks_may_be_among_who_answers(self, queue: QueueHarness) -> None:
        node, subject = await queue.client("north"), f"{queue.namespace}.ask"
        await node.serve(subject, _says("north"))
        await queue.quiet()

        answers = await node.scatter(subject, b"?", timeout_s=5.0, expected=1)

        assert answers == [Answer("north", b"north: ?")]

    async def test_a_failing_responder_is_a_failed_answer_and_no_silence(self, queue: QueueHarness) -> None:
        asker, broken = await queue.client("asker"), await queue.client("broken")
        subject = f"{queue.namespace}.ask"

        async def fails(payload: bytes) -> bytes:
            raise RuntimeError("the store is gone")

        await broken.serve(subject, fails)
        await queue.quiet()

        answers = await asker.scatter(subject, b"?", timeout_s=5.0, expected=1)

        assert [(answer.node, answer.payload) for answer in answers] == [("broken", b"")]
        assert answers[0].error

    async def test_who_is_silent_is_missing_when_the_time_is_up(self, queue: QueueHarness) -> None:
        asker, quick, silent = await queue.client("asker"), await queue.client("quick"), await queue.client("silent")
        subject, never = f"{queue.namespace}.ask", asyncio.Event()

        async def waits(payload: bytes) -> bytes:
            await never.wait()
            return payload

        await quick.serve(subject, _says("quick"))
        await silent.serve(subject, waits)
        await queue.quiet()

        asked_at_s = queue.now_s()
        answers = await asker.scatter(subject, b"?", timeout_s=0.5, expected=2)

        assert [answer.node for answer in answers] == ["quick"]
        assert 0.45 <= queue.now_s() - asked_at_s < 3.0

    async def test_a_question_that_nobody_serves_ends_with_no_answer(self, queue: QueueHarness) -> None:
        asker = await queue.client("asker")

        assert await asker.scatter(f"{queue.namespace}.ask", b"?", timeout_s=0.3, expected=1) == []

    async def test_a_closed_responder_answers_no_more(self, queue: QueueHarness) -> None:
        asker, node = await queue.client("asker"), await queue.client("north")
        subject = f"{queue.namespace}.ask"
        serving = await node.serve(subject, _says("north"))
        await queue.quiet()
        before = await asker.scatter(subject, b"?", timeout_s=5.0, expected=1)

        await serving.close()
        await serving.close()

        assert len(before) == 1
        assert await asker.scatter(subject, b"?", timeout_s=0.3, expected=1) == []


def _says(name: str) -> Responder:
    async def answer(payload: bytes) -> bytes:
        return name.encode() + b": " + payload

    return answer
