"""The operator's hands on the queue, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from crewlet import topics
from crewlet.base.errors import MailboxFull, PayloadTooLarge, Unavailable
from crewlet.node.face import MailboxView
from tests.unit.api.small_node import NOW, SmallNode, asking, config, letter, serving

pytestmark = pytest.mark.slow


@pytest.fixture
def node() -> SmallNode:
    return SmallNode()


@pytest.fixture
async def api(node: SmallNode, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        yield client


def box(seat: str) -> MailboxView:
    topic, group = topics.agent_inbox(seat), topics.inbox_group(seat)
    return MailboxView(topic=topic, group=group, seat=seat, pending=3, held=1, oldest=NOW, attached="here")


async def test_mailboxes_tell_what_waits_and_who_is_attached(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.boxes = [box("ceo"), box("cto")]

    everything = (await api.get("/mailboxes")).json()["mailboxes"]
    one = (await api.get("/mailboxes", params={"seat": "cto"})).json()["mailboxes"]

    assert [each["seat"] for each in everything] == ["ceo", "cto"]
    assert one == [
        {
            "topic": topics.agent_inbox("cto"),
            "group": topics.inbox_group("cto"),
            "seat": "cto",
            "pending": 3,
            "held": 1,
            "oldest": NOW.isoformat().replace("+00:00", "Z"),
            "attached": "here",
        }
    ]


async def test_a_handle_that_can_be_none_is_refused(api: httpx.AsyncClient) -> None:
    for path in ("/mailboxes", "/dead-letters"):
        answer = await api.get(path, params={"seat": "the boss"})

        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), path


async def test_letters_come_newest_first_and_in_pages(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.dead_letters.letters = {str(number): letter(number) for number in (1, 2, 3)}

    first = (await api.get("/dead-letters", params={"limit": "2"})).json()
    second = (await api.get("/dead-letters", params={"limit": "2", "before": first["next"]})).json()

    assert [row["id"] for row in first["letters"]] == ["3", "2"]
    assert [row["id"] for row in second["letters"]] == ["1"]
    assert second["next"] is None
    assert first["letters"][0] == {
        "id": "3",
        "at": NOW.isoformat().replace("+00:00", "Z"),
        "topic": topics.agent_inbox("ceo"),
        "group": topics.inbox_group("ceo"),
        "seat": "ceo",
        "reason": "no such tool",
        "deliveries": 25,
        "stream": topics.STREAM_AGENT,
        "stream_seq": 103,
        "size_bytes": letter(3).size_bytes,
        "event_id": "e-3",
        "event_type": "probe",
        "trace_id": "trace-1",
        "summary": "probe",
    }


async def test_letters_are_narrowed_by_seat_or_by_topic(node: SmallNode, api: httpx.AsyncClient) -> None:
    await api.get("/dead-letters", params={"seat": "ceo", "limit": "7"})
    await api.get("/dead-letters", params={"topic": "some.>"})
    both = await api.get("/dead-letters", params={"seat": "ceo", "topic": "some.>"})

    assert node.dead_letters.asked == [(7, "", topics.agent_topics("ceo")), (50, "", "some.>")]
    assert both.status_code == 400


@pytest.mark.parametrize("query", [{"before": "nonsense"}, {"limit": "0"}, {"limit": "201"}, {"seats": "ceo"}])
async def test_a_question_that_cannot_be_meant_is_refused(api: httpx.AsyncClient, query: dict[str, str]) -> None:
    answer = await api.get("/dead-letters", params=query)

    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")


async def test_one_letter_is_shown_with_its_message(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.dead_letters.letters = {"1": letter(1), "2": letter(2, payload=b"\xffnot json")}

    event = (await api.get("/dead-letters/1")).json()
    noise = (await api.get("/dead-letters/2")).json()

    assert event["payload"]["id"] == "e-1"
    assert (noise["payload"], noise["event_id"]) == ("\N{REPLACEMENT CHARACTER}not json", "")


async def test_a_letter_is_sent_again(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.dead_letters.letters = {"1": letter(1)}

    answer = await api.post("/dead-letters/1/redrive")

    assert (answer.status_code, node.dead_letters.redriven) == (200, ["1"])
    assert answer.json() == {"id": "1", "topic": topics.agent_inbox("ceo"), "event_id": "e-1"}


async def test_a_letter_without_a_mailbox_is_kept_and_it_is_said(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.dead_letters.letters = {"1": letter(1)}
    node.dead_letters.orphans = {"1"}

    answer = await api.post("/dead-letters/1/redrive")

    assert (answer.status_code, answer.json()["error"]) == (409, "mailbox_gone")
    assert topics.agent_inbox("ceo") in answer.json()["message"]
    assert "1" in node.dead_letters.letters


async def test_a_letter_is_dropped_once(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.dead_letters.letters = {"1": letter(1)}

    dropped = await api.delete("/dead-letters/1")
    again = await api.delete("/dead-letters/1")

    assert (dropped.status_code, dropped.json()) == (200, {"id": "1"})
    assert (again.status_code, again.json()["error"]) == (404, "no_such_dead_letter")


@pytest.mark.parametrize(("method", "path"), [("GET", "/dead-letters/9"), ("POST", "/dead-letters/9/redrive")])
async def test_a_letter_that_is_not_there_is_said_to_be_none(api: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await api.request(method, path)

    assert (answer.status_code, answer.json()["error"]) == (404, "no_such_dead_letter")


async def test_an_unknown_outcome_is_said_to_be_unknown(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.broken = Unavailable("the broker does not answer")

    sent = await api.post("/dead-letters/1/redrive")
    read = await api.get("/dead-letters")

    assert (sent.status_code, sent.json()["outcome"]) == (503, "unknown")
    assert (read.status_code, "outcome" in read.json()) == (503, False)


async def test_a_letter_that_finds_no_room_is_known_not_to_be_sent(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.broken = MailboxFull("a.topic", "maximum bytes exceeded")

    answer = await api.post("/dead-letters/1/redrive")

    assert (answer.status_code, answer.json()["error"]) == (503, "mailbox_full")
    assert ("outcome" in answer.json(), answer.headers["Retry-After"]) == (False, "30")


async def test_a_broker_whose_disk_is_full_leaves_the_outcome_open(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.broken = MailboxFull("a.topic", "no space left on device", at_limit=False)

    answer = await api.post("/dead-letters/1/redrive")

    assert (answer.json()["error"], answer.json()["outcome"]) == ("unavailable", "unknown")


async def test_a_letter_that_the_broker_finds_too_large_now_is_refused(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.broken = PayloadTooLarge("a.topic", size=9, limit=5)

    answer = await api.post("/dead-letters/1/redrive")

    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, 5)
