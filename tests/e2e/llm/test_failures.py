"""Each way to fail, on each wire: one kind, one call, no secret in what is said."""

from __future__ import annotations

import pytest

from crewlet.llm import FailureKind, ModelFailure
from crewlet.testing.model_replies import Hang, HttpError, ServerReply
from crewlet.testing.model_servers import ModelServer
from tests.e2e.llm.conftest import HELLO, KEY, MakeModel

pytestmark = pytest.mark.slow


def unheard(_piece: str) -> None:
    """Takes what streams in and does nothing with it."""


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(status=429, type="rate_limit_error"), FailureKind.RATE_LIMITED),
        (HttpError(status=402, type="billing_error"), FailureKind.PAYMENT),
        (HttpError(status=401, type="authentication_error"), FailureKind.AUTH),
        (HttpError(status=403, type="permission_error"), FailureKind.AUTH),
        (HttpError(status=500, type="api_error"), FailureKind.SERVER),
        (HttpError(status=503), FailureKind.SERVER),
        (HttpError(status=529, type="overloaded_error"), FailureKind.SERVER),
        (HttpError(status=502, body="<html>bad gateway</html>"), FailureKind.SERVER),
        (HttpError(status=408), FailureKind.TIMEOUT),
        (HttpError(status=400, type="invalid_request_error"), FailureKind.BAD_REQUEST),
        (HttpError(status=422), FailureKind.BAD_REQUEST),
        (HttpError(status=404, code="model_not_found", message="no such model"), FailureKind.BAD_REQUEST),
        (
            HttpError(
                status=400,
                type="invalid_request_error",
                code="context_length_exceeded",
                message="prompt is too long: 210000 tokens > 200000 maximum",
            ),
            FailureKind.CONTEXT_EXCEEDED,
        ),
        (HttpError(status=413, message="prompt is too long"), FailureKind.CONTEXT_EXCEEDED),
        (Hang(reset=True), FailureKind.NETWORK),
    ],
    ids=lambda value: f"{value.status}-{value.type}" if isinstance(value, HttpError) else str(value),
)
async def test_a_failure_has_one_kind_and_costs_one_call(
    server: ModelServer, make_model: MakeModel, wire: str, streamed: bool, reply: ServerReply, kind: FailureKind
) -> None:
    server.will(reply)

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire).complete(HELLO, on_delta=unheard if streamed else None)

    assert caught.value.kind is kind
    assert caught.value.provider_key == "smart"
    assert len(server.requests) == 1


async def test_silence_is_a_timeout(server: ModelServer, make_model: MakeModel, wire: str, streamed: bool) -> None:
    server.will(Hang())

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire, timeout_s=0.3).complete(HELLO, on_delta=unheard if streamed else None)

    assert caught.value.kind is FailureKind.TIMEOUT


async def test_nobody_listening_is_a_network_failure(make_model: MakeModel, wire: str) -> None:
    with pytest.raises(ModelFailure) as caught:
        await make_model(wire, url="http://127.0.0.1:9/v1").complete(HELLO)

    assert caught.value.kind is FailureKind.NETWORK
    assert str(caught.value).endswith(".base_url?)")


async def test_an_error_inside_a_stream_counts_as_the_same_error_before_it(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(HttpError(status=429, type="rate_limit_error", code="rate_limit_exceeded", in_stream=True))

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire).complete(HELLO, on_delta=unheard)

    assert caught.value.kind is FailureKind.RATE_LIMITED


async def test_a_spent_quota_is_about_payment_whatever_its_status(server: ModelServer, make_model: MakeModel) -> None:
    server.will(
        HttpError(status=429, code="insufficient_quota", type="insufficient_quota"),
        HttpError(status=400, type="invalid_request_error", message="Your credit balance is too low"),
    )

    for wire in ("openai", "anthropic"):
        with pytest.raises(ModelFailure) as caught:
            await make_model(wire).complete(HELLO)
        assert caught.value.kind is FailureKind.PAYMENT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "90"}, 90),
        ({"retry-after": "Sun, 01 Mar 2026 12:02:00 GMT"}, 120),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({}, None),
    ],
)
async def test_the_vendors_word_on_the_reset_is_passed_on(
    server: ModelServer, make_model: MakeModel, wire: str, headers: dict[str, str], seconds: float | None
) -> None:
    server.will(HttpError(status=429, type="rate_limit_error", headers=headers))

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire).complete(HELLO)

    assert caught.value.retry_after_s == seconds


async def test_a_key_that_the_vendor_quotes_is_not_passed_on(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(HttpError(status=401, message=f"Incorrect API key provided: {KEY}"))

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire).complete(HELLO)

    failure = caught.value
    assert "Incorrect API key provided: [key]" in str(failure)
    assert KEY not in repr(failure)
    assert failure.__cause__ is None
    assert failure.__suppress_context__


@pytest.mark.parametrize(
    ("reply", "field"),
    [
        (HttpError(status=401, type="authentication_error"), "providers.llm.smart.api_keys"),
        (HttpError(status=404, code="model_not_found", message="no such model"), "providers.llm.smart.model"),
    ],
)
async def test_a_failure_names_the_field_that_mends_it(
    server: ModelServer, make_model: MakeModel, wire: str, reply: ServerReply, field: str
) -> None:
    server.will(reply)

    with pytest.raises(ModelFailure, match=rf"\(check {field}"):
        await make_model(wire).complete(HELLO)
