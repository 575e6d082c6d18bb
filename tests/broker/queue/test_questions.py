"""Ephemeral questions: who answers is named, who fails says so, nothing is stored."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.queue import Answer
from tests.broker.queue.rig import Company, Node

pytestmark = pytest.mark.slow

SUBJECT = "crewlet.agent.roll_call"


async def test_every_node_that_serves_answers_by_its_name(company: Company) -> None:
    first, second, asker = [await company.node(name) for name in ("first", "second", "asker")]
    for node, word in ((first, b"1"), (second, b"2")):

        async def answer(question: bytes, word: bytes = word) -> bytes:
            return question + word

        await node.queue.serve(SUBJECT, answer)

    answers = await asker.queue.scatter(SUBJECT, b"here? ", timeout_s=5, expected=2)

    assert sorted(answers, key=lambda each: each.node) == [Answer("first", b"here? 1"), Answer("second", b"here? 2")]


async def test_a_node_may_ask_itself(node: Node) -> None:
    async def echo(question: bytes) -> bytes:
        return question

    await node.queue.serve(SUBJECT, echo)

    assert await node.queue.scatter(SUBJECT, b"x", timeout_s=5, expected=1) == [Answer("one", b"x")]


async def test_a_responder_that_fails_is_an_answer_with_its_error(node: Node) -> None:
    async def fail(_question: bytes) -> bytes:
        raise RuntimeError("the store is\nbusy")

    await node.queue.serve(SUBJECT, fail)

    assert await node.queue.scatter(SUBJECT, b"", timeout_s=5, expected=1) == [Answer("one", b"", "the store is busy")]


async def test_an_answer_above_the_brokers_limit_says_so(node: Node) -> None:
    async def shout(_question: bytes) -> bytes:
        return b"x" * (node.wire.max_payload_bytes + 1)

    await node.queue.serve(SUBJECT, shout)
    (answer,) = await node.queue.scatter(SUBJECT, b"", timeout_s=10, expected=1)

    assert answer.node == "one"
    assert "limit" in answer.error


async def test_a_question_above_the_brokers_limit_is_refused(node: Node) -> None:
    with pytest.raises(PayloadTooLarge):
        await node.queue.scatter(SUBJECT, b"x" * (node.wire.max_payload_bytes + 1), timeout_s=5)


async def test_a_question_that_nobody_serves_is_answered_by_nobody_at_once(node: Node) -> None:
    async with asyncio.timeout(3):
        assert await node.queue.scatter(SUBJECT, b"", timeout_s=60, expected=2) == []


async def test_the_silent_are_missing_after_the_deadline(company: Company) -> None:
    quick, stuck = await company.node("quick"), await company.node("stuck")

    async def answer(_question: bytes) -> bytes:
        return b"here"

    async def hang(_question: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    await quick.queue.serve(SUBJECT, answer)
    await stuck.queue.serve(SUBJECT, hang)

    assert await quick.queue.scatter(SUBJECT, b"", timeout_s=0.5, expected=2) == [Answer("quick", b"here")]


async def test_a_closed_service_answers_nothing_and_closing_twice_is_harmless(node: Node) -> None:
    async def answer(_question: bytes) -> bytes:
        return b""

    service = await node.queue.serve(SUBJECT, answer)
    await service.close()
    await service.close()

    assert await node.queue.scatter(SUBJECT, b"", timeout_s=0.5) == []


async def test_a_question_is_stored_nowhere_and_leaves_nothing_behind(node: Node) -> None:
    async def answer(_question: bytes) -> bytes:
        return b""

    before = node.queue.task_count
    service = await node.queue.serve(SUBJECT, answer)
    for _ in range(20):
        await node.queue.scatter(SUBJECT, b"", timeout_s=5, expected=1)
    await service.close()

    assert await node.stored() == 0
    assert node.wire.pending_requests == 0
    assert node.queue.task_count == before


async def test_a_link_that_drops_while_answers_come_is_not_taken_for_silence(company: Company) -> None:
    node, other = await company.node("node"), await company.node("other")
    asked = asyncio.Event()

    async def hang(_question: bytes) -> bytes:
        asked.set()
        await asyncio.Event().wait()
        return b""

    await other.queue.serve(SUBJECT, hang)
    asking = asyncio.create_task(node.queue.scatter(SUBJECT, b"", timeout_s=30, expected=1))
    await asked.wait()

    await company.broker.stop()

    with pytest.raises(Unavailable):
        await asking
