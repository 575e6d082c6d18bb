"""An endpoint that streams nothing, or knows no Responses API, is spoken to more simply; once per process."""

from __future__ import annotations

import pytest

from crewlet.llm import FailureKind, ModelFailure
from crewlet.testing.model_replies import Answer, HttpError
from crewlet.testing.model_servers import ModelServer
from tests.e2e.llm.conftest import HELLO, MakeModel

pytestmark = pytest.mark.slow

REFUSES = HttpError(status=400, type="invalid_request_error", message="`stream` is not supported by this model")


def unheard(_piece: str) -> None:
    """Takes what streams in and does nothing with it."""


def streams_asked(server: ModelServer) -> list[bool]:
    return [bool(request.body.get("stream")) for request in server.requests]


async def test_who_refuses_to_stream_is_asked_for_the_whole_from_then_on(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(REFUSES, Answer(text="one"), Answer(text="two"))
    model, heard = make_model(wire), list[str]()

    first = await model.complete(HELLO, on_delta=heard.append)
    second = await model.complete(HELLO, on_delta=heard.append)

    assert (first.message.text, second.message.text) == ("one", "two")
    assert heard == ["one", "two"]
    assert streams_asked(server) == [True, False, False]


async def test_who_answers_unstreamed_is_asked_for_the_whole_from_then_on(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(Answer(text="lost", unstreamed=True), Answer(text="one"), Answer(text="two"))
    model, heard = make_model(wire), list[str]()

    first = await model.complete(HELLO, on_delta=heard.append)
    await model.complete(HELLO, on_delta=heard.append)

    assert first.message.text == "one"
    assert heard == ["one", "two"]
    assert streams_asked(server) == [True, False, False]


async def test_what_was_found_out_of_an_endpoint_outlives_a_change_of_company(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(REFUSES, *(Answer(text="ok") for _ in range(3)))
    old, new, elsewhere = make_model(wire), make_model(wire), make_model(wire, model="another-model")
    await old.complete(HELLO, on_delta=unheard)

    new.take_over(old)
    elsewhere.take_over(old)
    await new.complete(HELLO, on_delta=unheard)
    await elsewhere.complete(HELLO, on_delta=unheard)

    assert streams_asked(server) == [True, False, False, True]


async def test_a_failure_that_is_not_about_streaming_changes_nothing(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(HttpError(status=500, type="api_error"), Answer(text="one"))
    model, heard = make_model(wire), list[str]()

    with pytest.raises(ModelFailure):
        await model.complete(HELLO, on_delta=heard.append)
    await model.complete(HELLO, on_delta=heard.append)

    assert streams_asked(server) == [True, True]


async def test_a_gateway_without_the_responses_api_is_spoken_to_in_chat_completions(make_model: MakeModel) -> None:
    async with ModelServer(paths=["/v1/chat/completions"]) as gateway:
        gateway.will(Answer(text="one"), Answer(text="two"))
        model = make_model("openai", url=gateway.openai_url)

        first = await model.complete(HELLO)
        await model.complete(HELLO)

    assert first.message.text == "one"
    assert [request.path for request in gateway.requests] == [
        "/v1/responses",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]


async def test_an_unknown_model_is_no_reason_to_speak_more_simply(server: ModelServer, make_model: MakeModel) -> None:
    server.will(HttpError(status=404, code="model_not_found", message="The model does not exist"))

    with pytest.raises(ModelFailure) as caught:
        await make_model("openai").complete(HELLO)

    assert caught.value.kind is FailureKind.BAD_REQUEST
    assert len(server.requests) == 1
