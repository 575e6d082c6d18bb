"""What the routes answer, and what they refuse, over real HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
import structlog

from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.base.trace import Trace
from crewlet.events.types import AgentPhaseStarted, AgentTurnCompleted, AgentTurnStarted
from crewlet.node.coverage import PeersSilent
from crewlet.node.face import NoSuchSeat
from tests.unit.api.small_node import Chronicle, SmallNode, answered, asking, config, serving, tight

pytestmark = pytest.mark.slow


@pytest.fixture
def node() -> SmallNode:
    return SmallNode()


@pytest.fixture
async def client(node: SmallNode, tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    async with serving(node, config(tmp_path, limits=tight(answer_timeout_s=0.2))) as server, asking(server) as asker:
        yield asker


async def _send(client: httpx.AsyncClient, handle: str = "ceo", **body: str) -> httpx.Response:
    return await client.post(f"/seats/{handle}/messages", json=body or {"text": "hi"})


async def test_health_says_how_the_process_stands(client: httpx.AsyncClient) -> None:
    answer = await client.get("/health")

    assert (answer.status_code, answer.json()["status"], answer.json()["seats"]) == (200, "ok", ["ceo"])


async def test_ready_is_200_while_nothing_speaks_against_it(client: httpx.AsyncClient) -> None:
    answer = await client.get("/ready")

    assert (answer.status_code, answer.json()) == (200, {"ready": True})


async def test_ready_is_503_with_every_reason(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.reasons = ("draining", "broker_unlinked")

    answer = await client.get("/ready")

    assert answer.status_code == 503
    assert answer.json() == {
        "error": "draining",
        "message": "not ready: draining, broker_unlinked",
        "reasons": ["draining", "broker_unlinked"],
    }


async def test_head_is_answered_as_get_without_its_body(client: httpx.AsyncClient) -> None:
    answer = await client.head("/health")

    assert (answer.status_code, answer.content) == (200, b"")


async def test_seats_lists_everybody(client: httpx.AsyncClient) -> None:
    seats = (await client.get("/seats")).json()["seats"]

    assert [(seat["handle"], seat["kind"], seat["epoch"]) for seat in seats] == [
        ("ceo", "agent", 1),
        ("ada", "human", None),
    ]


async def test_a_message_is_accepted_with_where_to_follow_it(client: httpx.AsyncClient, node: SmallNode) -> None:
    answer = await _send(client, text="  what next?\n")

    assert answer.status_code == 202
    assert answer.json() == {"id": "m-1", "href": "/messages/m-1", "trace_id": "trace-1"}
    assert node.sent == [("ceo", "  what next?\n", "operator:tester")]


async def test_an_unknown_seat_is_refused_with_a_guess_and_the_known_ones(client: httpx.AsyncClient) -> None:
    answer = await _send(client, "coe")

    said = answer.json()
    assert (answer.status_code, said["error"], said["did_you_mean"]) == (404, "no_such_seat", "ceo")
    assert said["known"] == ["ada", "ceo"]
    assert "did you mean 'ceo'" in said["message"]


async def test_swapped_letters_are_guessed_before_a_wrong_one(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.broken = NoSuchSeat("coe", ["ceo", "cto", "engineer"])

    answer = await _send(client, "coe")

    assert answer.json()["did_you_mean"] == "ceo"


async def test_a_persons_seat_takes_no_message(client: httpx.AsyncClient) -> None:
    answer = await _send(client, "ada")

    assert (answer.status_code, answer.json()["error"]) == (409, "not_an_agent")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"text": ""}', "text"),
        (b'{"text": " \\n"}', "text"),
        (b"{}", "text"),
        (b'{"text": 3}', "text"),
        (b'{"text": "hi", "priority": 1}', "priority"),
    ],
)
async def test_a_wrong_field_is_named(client: httpx.AsyncClient, node: SmallNode, body: bytes, path: str) -> None:
    answer = await client.post("/seats/ceo/messages", content=body, headers={"Content-Type": "application/json"})

    said = answer.json()
    assert (answer.status_code, said["error"], node.sent) == (400, "bad_request", [])
    assert [problem["path"] for problem in said["problems"]] == [path]
    assert said["message"].startswith(f"{path}: ")


async def test_a_body_that_is_not_sent_as_json_is_refused_with_the_header_to_send(client: httpx.AsyncClient) -> None:
    answer = await client.post("/seats/ceo/messages", content=b'{"text": "hi"}')

    assert answer.status_code == 400
    assert "Content-Type: application/json" in answer.json()["message"]


@pytest.mark.parametrize("query", ["limit=0", "limit=401", "failed=maybe", "since=yesterday", "sort=up", "category=x"])
async def test_a_wrong_query_is_told_in_the_words_of_the_other_messages(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/events?{query}")

    assert answer.json()["message"].startswith((f"{query.partition('=')[0]}: must be ", "sort: is not known here"))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
async def test_a_body_that_is_no_object_is_refused(client: httpx.AsyncClient, node: SmallNode, body: bytes) -> None:
    answer = await client.post("/seats/ceo/messages", content=body, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["error"], node.sent) == (400, "bad_request", [])


async def test_a_message_above_the_brokers_limit_is_refused(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.broken = PayloadTooLarge("s", size=9, limit=8)

    answer = await _send(client)

    assert (answer.status_code, answer.json()["error"], answer.json()["limit_bytes"]) == (413, "body_too_large", 8)


async def test_an_unknown_outcome_of_a_write_is_said(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.broken = Unavailable("the broker did not answer")

    answer = await _send(client)

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    said = answer.json()
    assert (said["error"], said["outcome"], said["cause"]) == ("unavailable", "unknown", "the broker did not answer")
    assert "may have happened" in said["message"]


async def test_a_read_that_failed_has_no_outcome(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.broken = Unavailable("the database is closed")

    answer = await client.get("/events")

    assert (answer.status_code, answer.json()["error"], "outcome" in answer.json()) == (503, "unavailable", False)


@pytest.mark.parametrize(("path", "is_write"), [("/seats/ceo/messages", True), ("/messages/m-1", False)])
async def test_a_node_that_hangs_is_given_up(
    client: httpx.AsyncClient, node: SmallNode, path: str, is_write: bool
) -> None:
    node.hangs = True

    answer = await (_send(client) if is_write else client.get(path))

    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    assert ("outcome" in answer.json()) is is_write


async def test_a_draining_node_takes_no_writes_and_still_answers_reads(
    client: httpx.AsyncClient, node: SmallNode
) -> None:
    node.drain()

    written, read = await _send(client), await client.get("/seats")

    assert (written.status_code, written.json()["error"], written.headers["retry-after"]) == (503, "draining", "30")
    assert (read.status_code, node.sent) == (200, [])


async def test_what_breaks_is_logged_and_never_shown(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.broken = RuntimeError("a secret of the inside")

    with structlog.testing.capture_logs() as logged:
        answer = await client.get("/events")

    assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
    assert "secret" not in answer.text
    assert [(entry["event"], entry["exc_info"]) for entry in logged] == [("api_request_failed", True)]


async def test_a_message_shows_how_it_stands(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.messages["m-1"] = answered()

    said = (await client.get("/messages/m-1")).json()

    assert (said["state"], said["answer"], said["turns"], said["asks"]) == ("answered", "hello", [], [])


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/messages/m-9", 404, "no_such_message"),
        ("GET", "/events/e-9", 404, "no_such_event"),
        ("GET", "/turns/t-9", 404, "no_such_turn"),
        ("GET", "/nothing", 404, "no_route"),
        ("GET", "/", 404, "no_route"),
        ("GET", "/seats/", 404, "no_route"),
        ("GET", "/docs", 404, "no_route"),
        ("POST", "/seats", 405, "method_not_allowed"),
        ("DELETE", "/messages/m-1", 405, "method_not_allowed"),
        ("TRACE", "/seats", 405, "method_not_allowed"),
        ("OPTIONS", "/seats", 405, "method_not_allowed"),
        ("GET", "/ws/stream", 426, "upgrade_required"),
    ],
)
async def test_a_refusal_is_an_envelope(
    client: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await client.request(method, path)

    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.json()["message"]
    assert answer.headers["content-type"] == "application/json"


async def test_a_wrong_verb_is_told_the_right_one(client: httpx.AsyncClient) -> None:
    assert (await client.post("/seats", json={})).headers["allow"] == "GET"


async def test_pages_of_events_meet_without_a_gap(client: httpx.AsyncClient, node: SmallNode) -> None:
    chronicle = Chronicle()
    node.rows = [chronicle.row(AgentTurnStarted(turn_id=f"t-{n}", agent_handle="ceo")) for n in range(5)]
    seen: list[str] = []
    query: dict[str, str] = {"limit": "2"}

    while True:
        page = (await client.get("/events", params=query)).json()
        seen += [row["id"] for row in page["events"]]
        if page["next"] is None:
            break
        query["before"] = page["next"]

    assert seen == [row.event.id for row in reversed(node.rows)]


async def test_a_row_of_a_page_has_its_facts_and_no_payload(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.rows = [Chronicle().row(AgentTurnCompleted(turn_id="t-1", agent_handle="ceo", work_key="w", failed=True))]

    (row,) = (await client.get("/events")).json()["events"]

    assert row == {
        "id": node.rows[0].event.id,
        "type": "agent_turn_completed",
        "timestamp": "2026-03-01T12:00:01Z",
        "source": "node-0",
        "actor": "ceo",
        "summary": "ceo ended a turn (failed: )",
        "category": "system",
        "trace_id": "trace-1",
        "span_id": "span-1",
        "parent_span_id": "",
        "topic": "crewlet.events.agent_turn_completed",
        "failed": True,
        "node": "",
        "turn_id": "t-1",
        "work_key": "w",
        "agent_handle": "ceo",
        "tags": {},
    }


async def test_every_filter_reaches_the_log(client: httpx.AsyncClient, node: SmallNode) -> None:
    query = (
        "type=agent_turn_started&type=a2a_message_sent&category=a2a&seat=ceo&trace_id=t&turn_id=u&failed=true"
        "&conversation=chat:D1"
        "&since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z&limit=400"
    )

    assert (await client.get(f"/events?{query}")).status_code == 200

    (asked,) = node.asked
    assert asked.types == ("agent_turn_started", "a2a_message_sent")
    assert (asked.category, asked.seat, asked.trace_id, asked.turn_id) == ("a2a", "ceo", "t", "u")
    assert (asked.failed, asked.limit, asked.conversation) == (True, 400, "chat:D1")
    assert (str(asked.since), str(asked.until)) == ("2026-01-01 00:00:00+00:00", "2026-02-01 00:00:00+00:00")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "limit"),
        ("limit=401", "limit"),
        ("limit=many", "limit"),
        ("category=gossip", "category"),
        ("since=yesterday", "since"),
        ("before=xyz", "before"),
        ("seats=ceo", "seats"),
        ("&".join(["type=t"] * 65), "type"),
    ],
)
async def test_a_wrong_filter_is_named(client: httpx.AsyncClient, node: SmallNode, query: str, path: str) -> None:
    answer = await client.get(f"/events?{query}")

    assert (answer.status_code, answer.json()["error"], node.asked) == (400, "bad_request", [])
    assert [problem["path"] for problem in answer.json()["problems"]] == [path]


async def test_one_event_comes_with_its_payload(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.rows = [Chronicle().row(AgentTurnCompleted(turn_id="t-1", artifact="the answer"))]

    said = (await client.get(f"/events/{node.rows[0].event.id}")).json()

    assert (said["turn_id"], said["payload"]["artifact"]) == ("t-1", "the answer")


async def test_a_turn_comes_with_its_standing_and_its_events(client: httpx.AsyncClient, node: SmallNode) -> None:
    chronicle = Chronicle()
    node.rows = [
        chronicle.row(AgentTurnStarted(turn_id="t-1", agent_handle="ceo")),
        chronicle.row(AgentTurnCompleted(turn_id="t-1", agent_handle="ceo", decision="done", artifact="a")),
    ]

    said = (await client.get("/turns/t-1")).json()

    assert (said["turn"]["state"], said["turn"]["artifact"], said["turn"]["handle"]) == ("done", "a", "ceo")
    assert [event["payload"]["type"] for event in said["events"]] == ["agent_turn_started", "agent_turn_completed"]


async def test_a_turn_whose_beginning_is_gone_stands_as_its_end_says(
    client: httpx.AsyncClient, node: SmallNode
) -> None:
    node.rows = [Chronicle().row(AgentTurnCompleted(turn_id="t-1", decision="done"))]

    said = (await client.get("/turns/t-1")).json()

    assert (said["turn"]["state"], len(said["events"])) == ("done", 1)


async def test_a_turn_of_which_neither_end_is_left_has_no_standing(client: httpx.AsyncClient, node: SmallNode) -> None:
    node.rows = [Chronicle().row(AgentPhaseStarted(turn_id="t-1", phase="execute"))]

    said = (await client.get("/turns/t-1")).json()

    assert (said["turn"], len(said["events"])) == (None, 1)


async def test_no_token_reaches_a_log(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)

    await client.get("/seats")
    await client.get("/ws/stream?token=a-secret-in-the-query")

    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    said = capsys.readouterr()
    assert "secret" not in "".join([*ours, said.out, said.err])


CALLER = Trace("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")


@pytest.mark.parametrize(
    ("header", "parent"),
    [
        ({"traceparent": f"00-{CALLER.trace_id}-{CALLER.span_id}-01"}, CALLER),
        ({"traceparent": "nonsense"}, None),
        ({}, None),
    ],
)
async def test_a_message_is_part_of_the_callers_trace_where_it_says_one(
    node: SmallNode, client: httpx.AsyncClient, header: dict[str, str], parent: Trace | None
) -> None:
    answer = await client.post("/seats/ceo/messages", json={"text": "Hi"}, headers=header)

    assert (answer.status_code, node.parents) == (202, [parent])


async def test_a_message_that_a_silent_node_may_know_is_unknown_and_that_node_is_named(
    client: httpx.AsyncClient, node: SmallNode
) -> None:
    node.broken = PeersSilent("e-1", "node-2 (no answer in time)")

    answer = await client.get("/messages/m-9")

    said = answer.json()
    assert (answer.status_code, said["error"]) == (503, "unavailable")
    assert "node-2 (no answer in time) did not answer" in said["message"]
