"""`crewlet dlq` and `crewlet mailboxes` against a real API: what they print where, what they ask for, how they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.api import ApiServer
from crewlet.base.errors import Unavailable
from crewlet.cli import main
from crewlet.node import MailboxView
from tests.unit.api.small_node import NOW, TOKEN, SmallNode, config, letter, serving

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


@pytest.fixture
def company(monkeypatch: pytest.MonkeyPatch) -> SmallNode:
    monkeypatch.setenv("CREWLET_API_TOKEN", TOKEN)
    node = SmallNode()
    node.dead_letters.letters = {str(number): letter(number) for number in (8, 9, 10)}
    return node


@pytest.fixture
async def server(company: SmallNode, tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with serving(company, config(tmp_path)) as server:
        yield server


async def crewlet(server: ApiServer, *argv: str) -> int:
    return await asyncio.to_thread(main, [*argv, "--url", server.url])


async def test_mailboxes_are_a_table(server: ApiServer, company: SmallNode, capsys: Said) -> None:
    topic, group = topics.agent_inbox("ceo"), topics.inbox_group("ceo")
    company.boxes = [
        MailboxView(topic=topic, group=group, seat="ceo", pending=3, held=1, oldest=NOW, attached="here"),
        MailboxView(topic="other", group="g", seat="", pending=0, held=0, oldest=None, attached="nobody"),
    ]

    code = await crewlet(server, "mailboxes")

    header, first, second = capsys.readouterr().out.splitlines()
    assert (code, header.split()) == (0, ["TOPIC", "GROUP", "PENDING", "HELD", "OLDEST", "ATTACHED"])
    assert first.split() == [topic, group, "3", "1", "2026-03-01T12:00:00Z", "here"]
    assert second.split() == ["other", "g", "0", "0", "-", "nobody"]


async def test_a_seat_without_a_mailbox_is_said_to_have_none(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    company.boxes = [
        MailboxView(topic="t", group="g", seat="ceo", pending=0, held=0, oldest=None, attached="nobody"),
    ]

    code = await crewlet(server, "mailboxes", "--seat", "coe")

    said = capsys.readouterr()
    expected = "crewlet: no mailbox of seat 'coe' (is the name right? `crewlet seats` shows names)\n"
    assert (code, said.out, said.err) == (0, "", expected)


async def test_mailboxes_of_one_seat_as_json(server: ApiServer, company: SmallNode, capsys: Said) -> None:
    company.boxes = [
        MailboxView(topic=seat, group="g", seat=seat, pending=0, held=0, oldest=None, attached="nobody")
        for seat in ("ceo", "cto")
    ]

    code = await crewlet(server, "mailboxes", "--seat", "cto", "--json")

    assert (code, [row["seat"] for row in json.loads(capsys.readouterr().out)["mailboxes"]]) == (0, ["cto"])


async def test_letters_are_a_table_newest_first(server: ApiServer, company: SmallNode, capsys: Said) -> None:
    company.dead_letters.letters["9"] = letter(9, payload=b"noise", reason="\x1b[2Jcannot be read")

    code = await crewlet(server, "dlq", "list")

    said = capsys.readouterr()
    header, *rows = said.out.splitlines()
    assert (code, header.split()) == (0, ["ID", "AT", "SEAT", "EVENT", "DELIVERIES", "REASON"])
    assert [row.split()[0] for row in rows] == ["10", "9", "8"]
    assert rows[1].split("  ")[-1] == "cannot be read"
    assert "(no event)" in rows[1]
    assert said.err == ""


async def test_a_list_that_is_not_whole_says_how_to_go_on(server: ApiServer, capsys: Said) -> None:
    await crewlet(server, "dlq", "list", "--limit", "2")
    first = capsys.readouterr()
    await crewlet(server, "dlq", "list", "--limit", "2", "--before", "9", "--json")
    second = capsys.readouterr()

    assert [row.split()[0] for row in first.out.splitlines()] == ["ID", "10", "9"]
    assert "--before 9" in first.err
    assert [row["id"] for row in json.loads(second.out)["letters"]] == ["8"]
    assert json.loads(second.out)["more"] is False


async def test_no_letter_is_said_and_is_no_failure(server: ApiServer, capsys: Said) -> None:
    code = await crewlet(server, "dlq", "list", "--seat", "cto")

    said = capsys.readouterr()
    assert (code, said.out, said.err) == (0, "", "crewlet: no dead letter of seat 'cto'\n")


async def test_one_letter_is_shown_with_its_message(server: ApiServer, capsys: Said) -> None:
    code = await crewlet(server, "dlq", "show", "9")
    shown = capsys.readouterr().out
    await crewlet(server, "dlq", "show", "9", "--json")
    as_json = json.loads(capsys.readouterr().out)

    assert code == 0
    assert "reason:      no such tool\n" in shown
    assert '  "id": "e-9",\n' in shown
    assert as_json["payload"]["id"] == "e-9"


async def test_a_letter_that_is_not_there_is_a_failure_in_one_line(server: ApiServer, capsys: Said) -> None:
    code = await crewlet(server, "dlq", "show", "77")

    said = capsys.readouterr()
    assert (code, said.out, said.err) == (1, "", "crewlet: there is no dead letter '77'\n")


async def test_one_letter_is_sent_again_without_further_ado(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    code = await crewlet(server, "dlq", "redrive", "9")

    assert (code, company.dead_letters.redriven) == (0, ["9"])
    assert capsys.readouterr().out == f"9  redriven to {topics.agent_inbox('ceo')}\n"


@pytest.mark.parametrize("verb", ["redrive", "drop"])
@pytest.mark.parametrize("which", [["8", "9"], ["--all"]])
async def test_several_are_touched_only_when_that_is_confirmed(
    server: ApiServer, company: SmallNode, capsys: Said, verb: str, which: list[str]
) -> None:
    code = await crewlet(server, "dlq", verb, *which)

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert f"this would {verb} {3 if which == ['--all'] else 2} letters (say --yes to do it)" in said.err
    assert (company.dead_letters.redriven, len(company.dead_letters.letters)) == ([], 3)


async def test_all_letters_of_a_seat_are_sent_again_the_oldest_first(server: ApiServer, company: SmallNode) -> None:
    company.dead_letters.letters["11"] = letter(11, seat="cto")

    code = await crewlet(server, "dlq", "redrive", "--all", "--seat", "ceo", "--yes")

    assert (code, company.dead_letters.redriven) == (0, ["8", "9", "10"])
    assert [*company.dead_letters.letters] == ["11"]


async def test_a_letter_that_cannot_be_sent_does_not_hold_up_the_others(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    company.dead_letters.orphans = {"9"}

    code = await crewlet(server, "dlq", "redrive", "8", "9", "10", "--yes")

    said = capsys.readouterr()
    assert (code, company.dead_letters.redriven) == (1, ["8", "10"])
    assert "is gone: letter 9 was not sent and is kept" in said.err


async def test_letters_are_dropped(server: ApiServer, company: SmallNode, capsys: Said) -> None:
    code = await crewlet(server, "dlq", "drop", "9", "8", "8", "--yes")

    assert (code, [*company.dead_letters.letters]) == (0, ["10"])
    assert capsys.readouterr().out == "8  dropped\n9  dropped\n"


@pytest.mark.parametrize("which", [[], ["8", "--all"], ["8", "--seat", "ceo"], ["--seat", "ceo"]])
async def test_letters_are_named_one_way_or_the_other(
    server: ApiServer, company: SmallNode, capsys: Said, which: list[str]
) -> None:
    code = await crewlet(server, "dlq", "drop", *which)

    assert (code, len(company.dead_letters.letters)) == (2, 3)
    assert "letter" in capsys.readouterr().err


async def test_what_is_unavailable_stops_the_command(server: ApiServer, company: SmallNode, capsys: Said) -> None:
    company.broken = Unavailable("the broker does not answer")

    code = await crewlet(server, "dlq", "redrive", "8", "9", "--yes")

    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert len(said.err.splitlines()) == 1
