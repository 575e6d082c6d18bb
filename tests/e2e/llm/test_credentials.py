"""Keys rest when the vendor turns them away, and the entry goes on with the next."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.llm import Bench, FailureKind, ModelFailure
from crewlet.testing import wait_until
from crewlet.testing.model_replies import Answer, HttpError
from crewlet.testing.model_servers import ModelServer
from tests.e2e.llm.conftest import HELLO, KEY, OTHER_KEY, HandClock, MakeModel

pytestmark = pytest.mark.slow

LIMITED = HttpError(status=429, type="rate_limit_error", headers={"retry-after": "120"})
REFUSED = HttpError(status=401, type="authentication_error")


def keys_used(server: ModelServer) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]


@pytest.mark.parametrize("turned_away", [LIMITED, REFUSED, HttpError(status=402, type="billing_error")])
async def test_the_next_key_is_tried_at_once(
    server: ModelServer, make_model: MakeModel, benches: list[Bench], turned_away: HttpError
) -> None:
    server.will(turned_away, Answer(text="ok"))

    reply = await make_model("openai", KEY, OTHER_KEY).complete(HELLO)

    assert reply.message.text == "ok"
    assert keys_used(server) == [KEY, OTHER_KEY]
    assert [bench.provider_key for bench in benches] == ["smart"]


async def test_a_key_rests_until_the_vendor_said_and_serves_again(
    server: ModelServer, make_model: MakeModel, clock: HandClock
) -> None:
    server.will(LIMITED, *(Answer(text="ok") for _ in range(3)))
    model = make_model("openai", KEY, OTHER_KEY)

    await model.complete(HELLO)
    clock.advance(119)
    await model.complete(HELLO)
    clock.advance(1)
    await model.complete(HELLO)

    assert keys_used(server) == [KEY, OTHER_KEY, OTHER_KEY, KEY]


async def test_the_last_keys_failure_is_what_the_caller_hears(
    server: ModelServer, make_model: MakeModel, benches: list[Bench]
) -> None:
    server.will(LIMITED, REFUSED)

    with pytest.raises(ModelFailure) as caught:
        await make_model("openai", KEY, OTHER_KEY).complete(HELLO)

    assert caught.value.kind is FailureKind.AUTH
    assert [bench.reason for bench in benches] == [FailureKind.RATE_LIMITED, FailureKind.AUTH]


async def test_while_every_key_rests_nobody_is_called_and_the_soonest_end_is_named(
    server: ModelServer, make_model: MakeModel
) -> None:
    server.will(LIMITED, REFUSED)
    model = make_model("openai", KEY, OTHER_KEY)
    with pytest.raises(ModelFailure):
        await model.complete(HELLO)

    with pytest.raises(ModelFailure, match="until 2026-03-01 12:02:00 UTC") as caught:
        await model.complete(HELLO)

    assert (caught.value.kind, caught.value.retry_after_s) == (FailureKind.RATE_LIMITED, 120)
    assert len(server.requests) == 2


async def test_calls_at_the_same_time_are_spread_over_the_keys(server: ModelServer, make_model: MakeModel) -> None:
    server.will(*(Answer(text="ok", delay_ms=50) for _ in range(4)))
    model = make_model("openai", KEY, OTHER_KEY)

    await asyncio.gather(*(model.complete(HELLO) for _ in range(4)))

    assert sorted(keys_used(server)) == [KEY, KEY, OTHER_KEY, OTHER_KEY]


async def test_a_cancelled_call_gives_its_key_back(server: ModelServer, make_model: MakeModel) -> None:
    server.will(Answer(text="late", delay_ms=5000), Answer(text="ok"))
    model = make_model("openai", KEY, OTHER_KEY)

    async with asyncio.TaskGroup() as group:
        call = group.create_task(model.complete(HELLO))
        await wait_until(lambda: len(server.requests) == 1, what="the first call")
        call.cancel()
    await model.complete(HELLO)

    assert keys_used(server) == [KEY, KEY]


async def test_a_peers_bench_keeps_a_key_from_being_tried(
    server: ModelServer, make_model: MakeModel, clock: HandClock, benches: list[Bench]
) -> None:
    server.will(LIMITED, Answer(text="ok"), Answer(text="ok"))
    await make_model("openai", KEY, OTHER_KEY).complete(HELLO)
    peer = make_model("openai", KEY, OTHER_KEY)

    peer.rest(benches[0])
    await peer.complete(HELLO)

    assert keys_used(server) == [KEY, OTHER_KEY, OTHER_KEY]


async def test_a_failure_that_is_not_about_the_key_tries_no_other(server: ModelServer, make_model: MakeModel) -> None:
    server.will(HttpError(status=500, type="api_error"))

    with pytest.raises(ModelFailure):
        await make_model("openai", KEY, OTHER_KEY).complete(HELLO)

    assert keys_used(server) == [KEY]
