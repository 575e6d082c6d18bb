"""`crewlet ask` against a real API: what it prints where, and how it ends."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.base.errors import Unavailable
from crewlet.cli import ask_command, main
from crewlet.events.types import AgentTurnCompleted, AgentTurnStarted
from crewlet.node import MessageState, MessageView
from tests.unit.api.small_node import TOKEN, Chronicle, SmallNode, answered, config, serving

pytestmark = pytest.mark.slow


class Company(SmallNode):
    """A node whose message stands, one after the other, as ``standings`` says; the last of them stays."""

    def __init__(self) -> None:
        super().__init__()
        self.standings: list[MessageView | Exception] = [answered()]
        self.publishes: list[AgentTurnStarted | AgentTurnCompleted] = []

    async def message(self, message_id: str) -> MessageView | None:
        chronicle = Chronicle()
        for body in self.publishes:
            self.publish(chronicle.event(body))
        self.publishes = []
        standing = self.standings.pop(0) if len(self.standings) > 1 else self.standings[0]
        if isinstance(standing, Exception):
            raise standing
        return standing if standing.id == message_id else None


@pytest.fixture
def company(monkeypatch: pytest.MonkeyPatch) -> Company:
    monkeypatch.setattr(ask_command, "_POLL_S", 0.02)
    monkeypatch.setenv("CREWLET_API_TOKEN", TOKEN)
    return Company()


@pytest.fixture
async def server(company: Company, tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with serving(company, config(tmp_path)) as server:
        yield server


async def crewlet(*argv: str) -> int:
    return await asyncio.to_thread(main, argv)


async def asks(server: ApiServer, *more: str, seat: str = "ceo", text: str = "Hi") -> int:
    return await crewlet("ask", seat, text, "--url", server.url, *more)


def standing(state: str, *, answer: str = "", reason: str = "") -> MessageView:
    return replace(answered(), state=state, answer=answer, reason=reason)


async def test_an_answer_is_printed_and_the_command_succeeds(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await asks(server)

    assert (code, capsys.readouterr().out) == (0, "hello\n")
    assert [(handle, text) for handle, text, _ in company.sent] == [("ceo", "Hi")]


async def test_the_command_waits_until_the_message_is_final(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.standings = [standing("waiting"), standing("working", answer="not yet"), answered()]

    code = await asks(server)

    assert (code, capsys.readouterr().out) == (0, "hello\n")


async def test_an_end_that_is_seen_before_it_is_stored_is_asked_for_again_soon(
    server: ApiServer, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_command, "_POLL_S", 60.0)
    company.standings = [standing("working"), standing("working"), standing("working"), answered()]
    company.publishes = [AgentTurnCompleted(turn_id="t1", agent_handle="ceo", decision="done")]

    assert await asks(server, "--timeout", "10") == 0


@pytest.mark.parametrize("state", [MessageState.FAILED, MessageState.SKIPPED])
async def test_a_message_that_was_not_answered_ends_with_code_1_and_the_reason(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    company.standings = [standing(state, reason="no model answered")]

    code = await asks(server)

    assert code == 1
    assert f"{state}: no model answered" in capsys.readouterr().err


async def test_no_answer_in_time_ends_with_code_3_and_what_is_known(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.standings = [standing("working", reason="no model answered")]

    code = await asks(server, "--timeout", "0.3")

    said = capsys.readouterr()
    assert (code, said.out) == (3, "")
    assert "no answer within 0.3 s: no model answered" in said.err
    assert "crewlet message m-1 --url http" in said.err


async def test_a_message_whose_turn_was_seen_to_begin_is_not_said_to_wait(
    server: ApiServer, company: Company, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ask_command, "_POLL_S", 60.0)
    company.standings = [standing("waiting"), standing("working")]
    company.publishes = [AgentTurnStarted(turn_id="t1", agent_handle="ceo")]

    await asks(server, "--timeout", "0.5")

    assert "no answer within 0.5 s: the message is working" in capsys.readouterr().err


async def test_what_a_waiting_message_waits_for_is_told_once(
    server: ApiServer, company: Company, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ask_command, "_POLL_S", 0.01)
    stopped = standing("waiting", reason="the seat is stopped: budget")
    company.standings = [stopped, stopped, standing("waiting"), answered()]

    await asks(server)

    told = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert told == ["waits: the seat is stopped: budget", "goes on"]


async def test_no_answer_in_time_is_json_for_programs_too(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.standings = [standing("working")]

    code = await asks(server, "--timeout", "0.3", "--json")

    message = json.loads(capsys.readouterr().out)
    assert (code, message["id"], message["state"]) == (3, "m-1", "working")


async def test_a_node_in_trouble_is_asked_again(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.standings = [*[Unavailable("the database does not answer")] * 3, answered()]

    code = await asks(server)

    said = capsys.readouterr()
    assert (code, said.out) == (0, "hello\n")
    assert said.err.count("\n") == 1


async def test_the_turns_of_this_message_are_shown_beside_the_answer(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.standings = [standing("waiting"), standing("working"), answered()]
    company.publishes = [
        AgentTurnStarted(turn_id="t1", agent_handle="ceo"),
        AgentTurnCompleted(turn_id="t1", agent_handle="ceo", decision="done"),
    ]

    await asks(server)

    said = capsys.readouterr()
    assert said.out == "hello\n"
    assert "ceo  begins a turn" in said.err


async def test_quiet_prints_the_answer_alone(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.publishes = [AgentTurnStarted(turn_id="t1", agent_handle="ceo")]

    await asks(server, "--quiet")

    said = capsys.readouterr()
    assert (said.out, said.err) == ("hello\n", "")


async def test_json_is_the_messages_standing(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.standings = [standing("failed", reason="no model answered")]

    code = await asks(server, "--json")

    message = json.loads(capsys.readouterr().out)
    assert (code, message["state"], message["reason"]) == (1, "failed", "no model answered")


async def test_an_answer_cannot_steer_the_terminal(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    company.standings = [standing("answered", answer="one\x1b[2J\x1b]0;title\x07\ntwo")]

    await asks(server)

    assert capsys.readouterr().out == "one\ntwo\n"


async def test_the_message_can_come_from_standard_input(
    server: ApiServer, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a long\nletter"))

    await asks(server, text="-")

    assert [text for _, text, _ in company.sent] == ["a long\nletter"]


@pytest.mark.parametrize(("seat", "says"), [("cfo", "cfo"), ("ada", "person")])
async def test_a_seat_that_cannot_be_written_to_is_said(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str], seat: str, says: str
) -> None:
    code = await asks(server, seat=seat)

    assert code == 1
    assert says in capsys.readouterr().err
    assert company.sent == []


async def test_a_refused_token_is_said_with_where_it_came_from(
    server: ApiServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREWLET_API_TOKEN", "another")

    code = await asks(server)

    said = capsys.readouterr()
    assert code == 1
    assert "refuses the token (CREWLET_API_TOKEN)" in said.err
    assert "another" not in said.err


async def test_a_missing_token_is_not_called_a_refused_one(
    server: ApiServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREWLET_API_TOKEN")

    code = await asks(server)

    said = capsys.readouterr().err
    assert code == 1
    assert "wants a token, and there is none to show" in said
    assert "operator-token cannot be read" in said


@pytest.mark.parametrize("argv", [["ask", "ceo", "Hi"], ["seats"]])
async def test_no_node_there_is_said_the_same_by_each_command(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    await crewlet(*argv, "--url", "http://127.0.0.1:9")

    assert "no node answers at http://127.0.0.1:9 (nothing listens there)" in capsys.readouterr().err


async def test_no_node_there_is_said_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    code = await crewlet("ask", "ceo", "Hi", "--url", "http://127.0.0.1:9")

    said = capsys.readouterr()
    assert code == 1
    assert "no node answers at http://127.0.0.1:9" in said.err
    assert "crewlet run" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["ask", "ceo", "  "], "the message is empty"),
        (["ask", "ceo", "Hi", "--timeout", "0"], "no time to wait"),
        (["ask", "ceo", "Hi", "--timeout", "nan"], "no time to wait"),
        (["ask", "ceo", "Hi", "--url", "nonsense"], "no http address"),
    ],
)
async def test_a_question_that_cannot_be_asked_ends_with_code_2(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await crewlet(*argv) == 2
    assert says in capsys.readouterr().err


async def test_seats_are_listed_one_a_line(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    code = await crewlet("seats", "--url", server.url)

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == ["SEAT", "ceo", "ada"]
    assert "(not a real model)" in lines[1]


async def test_events_are_shown_oldest_first_and_each_in_one_line(
    server: ApiServer, company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    chronicle = Chronicle()
    company.rows = [
        chronicle.row(AgentTurnStarted(turn_id="t1", agent_handle="ceo\x1b[2J\nforged line")),
        chronicle.row(AgentTurnCompleted(turn_id="t1", agent_handle="ceo", decision="done")),
    ]

    code = await crewlet("events", "--url", server.url)

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line.split()[1] for line in lines] == ["agent_turn_started", "agent_turn_completed"]
    assert "\x1b" not in lines[0]


async def test_a_name_that_no_event_has_is_not_passed_over_in_silence(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await crewlet("events", "--url", server.url, "--type", "agent_turn_complete")

    said = capsys.readouterr()
    assert (code, said.out) == (0, "")
    assert "no event of type 'agent_turn_complete' in this node's log" in said.err


async def test_a_result_for_programs_holds_no_warning(
    server: ApiServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What is odd about the node file is said by the node."""
    file = tmp_path / "crewlet.yaml"
    file.write_text("api: {auth: {tokens: [{id: a, token: in-plain-text}]}}")
    file.chmod(0o644)

    code = await crewlet("seats", "--json", "--url", server.url, "-c", str(file))

    said = capsys.readouterr()
    assert (code, len(json.loads(said.out)["seats"])) == (0, 2)
    assert said.err == ""
