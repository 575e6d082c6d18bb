"""A company at work over real wires: vendors' HTTP formats, a tool server's stdio, a broker, and the commands."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.testing.engines import run_command
from crewlet.testing.model_replies import Answer, HttpError
from crewlet.testing.model_servers import ModelServer
from crewlet.testing.ports import free_port
from tests.e2e.companies import KEYS, Json, notes_server, role, vendor
from tests.e2e.model_talk import calls, reviews, submits, talking_engine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as started:
        yield started


def entry(wire: str, server: ModelServer, *keys: str) -> Json:
    url = server.anthropic_url if wire == "anthropic" else server.openai_url
    return vendor(wire, url, *keys)


@pytest.mark.spec("E-202")
@pytest.mark.parametrize("wire", ["openai-compatible", "openai", "anthropic"])
async def test_a_question_travels_to_a_colleague_and_a_tool_and_its_answer_comes_back(
    tmp_path: Path, server: ModelServer, wire: str
) -> None:
    server.will(
        calls("a2a_ask", "That is one for the CTO.", handle="cto", brief="How long?"),
        calls("activate_tool", name="add_note"),
        calls("add_note", title="Asked", text="How long?", author="cto"),
        submits("Two weeks.", "Noted, and estimated.", deliveries=["add_note"]),
        reviews(),
        submits("The CTO says two weeks."),
        reviews(),
    )
    people = [role("ceo", "model"), role("cto", "model")]
    llm = {"model": entry(wire, server)}
    async with talking_engine(tmp_path, *people, llm=llm, server=server, mcp_servers=[notes_server()]) as talk:
        asked = await run_command("ask", "ceo", "When is it done?", cwd=tmp_path)

        assert (asked.code, asked.out) == (0, "The CTO says two weeks.\n")
        for shown in ("That is one for the CTO.", "opened a channel to cto", "add_note", "Noted, and estimated."):
            assert shown in asked.err
        assert json.loads((tmp_path / ".crewlet" / "notes.json").read_text())[0]["text"] == "How long?"
        assert talk.keys_shown() == [KEYS["FIRST_KEY"]] * 7
        closed = await talk.engine.api.events("a2a_channel_closed")
        assert len(closed) == 1
        # All that a model can do about an ask is to make one, and to answer.
        assert {name for name in talk.tools_offered() if "a2a" in name or "channel" in name} == {"a2a_ask"}


async def test_a_review_sends_the_work_back_once_and_its_notes_are_read(tmp_path: Path, server: ModelServer) -> None:
    server.will(
        submits("Maybe."),
        reviews("self_iterate", notes="Say yes or no.", completed_work="Nothing."),
        submits("Yes."),
        reviews(),
    )
    async with talking_engine(
        tmp_path, role("ceo", "model"), llm={"model": entry("openai", server)}, server=server
    ) as talk:
        message = await talk.ask()

        assert (message["state"], message["answer"]) == ("answered", "Yes.")
        assert len(message["turns"]) == 1
        assert "Say yes or no." in json.dumps(server.requests[2].body)


async def test_a_refusal_ends_the_turn_at_once_and_is_told_as_one(tmp_path: Path, server: ModelServer) -> None:
    server.will(Answer(refusal="I will not.", refusal_category="cyber"))
    async with talking_engine(
        tmp_path, role("ceo", "model"), llm={"model": entry("anthropic", server)}, server=server
    ) as talk:
        asked = await run_command("ask", "ceo", "Do harm.", cwd=tmp_path)

        assert asked.code == 1
        assert "did not answer: failed" in asked.err
        assert "the model declined: I will not." in asked.err
        assert len(server.requests) == 1
        skipped = await talk.engine.api.events("turn_trigger_skipped")
        assert [each["abandoned"] for each in skipped] == [True]


async def test_an_answer_cut_at_its_token_limit_breaks_the_turn_and_the_next_try_answers(
    tmp_path: Path, server: ModelServer
) -> None:
    server.will(Answer(text="It all began", stop="length"), submits("Short."), reviews())
    async with talking_engine(
        tmp_path, role("ceo", "model"), llm={"model": entry("openai", server)}, server=server
    ) as talk:
        message = await talk.ask()

        assert (message["state"], message["answer"]) == ("answered", "Short.")
        assert [turn["state"] for turn in message["turns"]] == ["redelivered", "done"]


async def test_a_key_that_is_limited_rests_and_the_next_one_serves(tmp_path: Path, server: ModelServer) -> None:
    server.will(
        HttpError(status=429, message="slow down", type="rate_limit_error", headers={"retry-after": "600"}),
        submits("Done."),
        reviews(),
    )
    llm = {"model": entry("anthropic", server, "FIRST_KEY", "SECOND_KEY")}
    async with talking_engine(tmp_path, role("ceo", "model"), llm=llm, server=server) as talk:
        message = await talk.ask()

        assert (message["state"], message["answer"]) == ("answered", "Done.")
        assert len(message["turns"]) == 1
        assert talk.keys_shown() == [KEYS["FIRST_KEY"], KEYS["SECOND_KEY"], KEYS["SECOND_KEY"]]


async def test_a_key_that_is_refused_gives_way_and_appears_nowhere(tmp_path: Path, server: ModelServer) -> None:
    key = KEYS["FIRST_KEY"]
    server.will(
        HttpError(status=401, message=f"bad key {key}", type="authentication_error"), submits("Done."), reviews()
    )
    llm = {"model": entry("openai-compatible", server, "FIRST_KEY", "SECOND_KEY")}
    async with talking_engine(tmp_path, role("ceo", "model"), llm=llm, server=server) as talk:
        message = await talk.ask()

        assert (message["state"], message["answer"]) == ("answered", "Done.")
        assert talk.keys_shown()[1:] == [KEYS["SECOND_KEY"]] * 2
        assert key not in talk.engine.err
        assert key.encode() not in talk.files.database.read_bytes()


async def test_the_next_entry_of_the_chain_takes_over_from_one_that_fails(tmp_path: Path, server: ModelServer) -> None:
    async with ModelServer() as healthy:
        server.will(*[HttpError(status=500, message="it broke", type="api_error")] * 2)
        healthy.will(submits("The second says so."), reviews())
        llm = {"first": entry("anthropic", server), "second": entry("openai-compatible", healthy)}
        async with talking_engine(tmp_path, role("ceo", "first", "second"), llm=llm, server=server) as talk:
            message = await talk.ask()

            assert (message["state"], message["answer"]) == ("answered", "The second says so.")
            moved = await talk.engine.api.events("provider_fallback")
            assert {(each["from_provider_key"], each["to_provider_key"]) for each in moved} == {("first", "second")}


@pytest.mark.alone
async def test_a_model_that_is_down_costs_no_message(tmp_path: Path) -> None:
    """The turn fails and says why, its trigger waits out the queue's backoff, and the server's return answers it."""
    server, port = ModelServer(), free_port()
    llm = {"model": vendor("openai-compatible", f"http://127.0.0.1:{port}/v1")}
    async with talking_engine(tmp_path, role("ceo", "model"), llm=llm, server=server) as talk:
        asked = await run_command("ask", "ceo", "Well?", "--timeout", "8", cwd=tmp_path)

        assert asked.code == 3
        assert "no answer within 8 s" in asked.err
        assert "no model answers" in asked.err
        unavailable = await talk.engine.api.events("llm_unavailable")
        assert unavailable[0]["chain"] == ["model"]
        server.will(submits("Here I am."), reviews())
        await server.start(port)
        try:
            message = await talk.engine.api.final_message(unmarked(asked.err), timeout_s=40)
        finally:
            await server.aclose()

        assert (message["state"], message["answer"]) == ("answered", "Here I am.")
        assert {turn["state"] for turn in message["turns"][:-1]} == {"redelivered"}
        assert {turn["error_kind"] for turn in message["turns"][:-1]} == {"llm_unavailable"}


def unmarked(err: str) -> str:
    """The id of the message that a command gave up on."""
    return err.rpartition("crewlet message ")[2].split()[0].strip("`")
