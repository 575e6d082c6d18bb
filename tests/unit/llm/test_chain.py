"""The fallback chain moves on where another model may help, and nowhere else."""

from __future__ import annotations

import pytest

from crewlet.llm import Chain, ChainExhausted, FailureKind, Fallback, ModelFailure, StopReason
from tests.unit.llm.stand_ins import ToldModel, a_request

MENDED = [kind for kind in FailureKind if kind not in {FailureKind.BAD_REQUEST, FailureKind.CONTEXT_EXCEEDED}]


@pytest.mark.parametrize("kind", MENDED)
async def test_the_next_member_answers_where_one_failed(kind: FailureKind) -> None:
    told: list[Fallback] = []
    chain = Chain([ToldModel("first", kind), ToldModel("second")])

    reply = await chain.complete(a_request(), on_fallback=told.append)

    assert reply.provider_key == "second"
    assert told == [Fallback("first", "second", kind, "first failed")]


@pytest.mark.parametrize("kind", [FailureKind.BAD_REQUEST, FailureKind.CONTEXT_EXCEEDED])
async def test_what_no_other_model_mends_is_raised_at_once(kind: FailureKind) -> None:
    second = ToldModel("second")
    told: list[Fallback] = []

    with pytest.raises(ModelFailure) as caught:
        await Chain([ToldModel("first", kind), second]).complete(a_request(), on_fallback=told.append)

    assert (caught.value.kind, second.calls, told) == (kind, 0, [])


async def test_a_refusal_is_a_reply_and_is_passed_to_nobody() -> None:
    first, second = ToldModel("first"), ToldModel("second")
    first.stop_reason = StopReason.REFUSAL

    reply = await Chain([first, second]).complete(a_request())

    assert (reply.stop_reason, second.calls) == (StopReason.REFUSAL, 0)


async def test_an_exhausted_chain_tells_a_fallback_to_nobody_and_then_raises_who_was_tried() -> None:
    told: list[Fallback] = []
    chain = Chain([ToldModel("first", FailureKind.TIMEOUT), ToldModel("second", FailureKind.SERVER)])

    with pytest.raises(ChainExhausted) as caught:
        await chain.complete(a_request(), on_fallback=told.append)

    assert [(each.from_provider_key, each.to_provider_key) for each in told] == [("first", "second"), ("second", "")]
    assert caught.value.tried == ("first", "second")
    assert caught.value.last.kind is FailureKind.SERVER


def test_a_chain_is_real_where_a_member_is() -> None:
    scripted = ToldModel("offline", is_real=False)

    assert Chain([scripted, ToldModel("smart")]).is_real
    assert not Chain([scripted]).is_real
