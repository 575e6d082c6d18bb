"""The shared records over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from crewlet.coordination import key_token
from tests.unit.api.small_node import SmallNode, asking, config, serving

pytestmark = pytest.mark.slow


@pytest.fixture
async def node() -> SmallNode:
    return SmallNode()


@pytest.fixture
async def api(node: SmallNode, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        yield client


async def test_the_slots_are_listed_with_their_ages(api: httpx.AsyncClient) -> None:
    slots = (await api.get("/coordination")).json()["slots"]

    assert [(slot["name"], slot["age_s"]) for slot in slots] == [("ledger", 604800.0), ("secrets", None)]


async def test_a_slots_records_come_by_class_and_in_pages(node: SmallNode, api: httpx.AsyncClient) -> None:
    for number in (2, 1):
        await node.stores["ledger"].create(f"ceo.e{number}", b'{"outcome": "done"}')

    first = (await api.get("/coordination/ledger", params={"class": "ceo", "limit": "1"})).json()
    second = (await api.get("/coordination/ledger", params={"class": "ceo", "after": first["next"]})).json()

    assert [(row["key"], row["value"]) for row in first["records"]] == [("ceo.e1", {"outcome": "done"})]
    assert [row["key"] for row in second["records"]] == ["ceo.e2"]
    assert second["next"] is None


async def test_one_record_is_read_by_its_name(node: SmallNode, api: httpx.AsyncClient) -> None:
    await node.stores["ledger"].create("ceo.e1", b'{"outcome": "done"}')

    found = (await api.get("/coordination/ledger/ceo:e1")).json()

    assert (found["key"], found["revision"], found["sealed"]) == ("ceo.e1", 1, False)


async def test_a_name_with_a_slash_is_one_name(node: SmallNode, api: httpx.AsyncClient) -> None:
    await node.stores["ledger"].create(f"worker.{key_token('group/project')}", b"{}")

    found = await api.get("/coordination/ledger/worker:group%2Fproject")

    assert found.status_code == 200


async def test_no_answer_holds_a_sealed_value(node: SmallNode, api: httpx.AsyncClient) -> None:
    await node.stores["secrets"].create("secret.KEY", b'{"sealed": "c2VjcmV0"}')

    page = await api.get("/coordination/secrets")
    one = await api.get("/coordination/secrets/secret.KEY")

    assert (page.status_code, one.status_code) == (200, 200)
    assert "c2VjcmV0" not in page.text + one.text
    assert one.json()["sealed"] is True


async def test_an_unknown_slot_is_answered_with_the_known_ones(api: httpx.AsyncClient) -> None:
    refused = (await api.get("/coordination/leses")).json()

    assert "ledger" in refused["known"]
    assert refused["message"] == f"no slot is called 'leses' (known: {', '.join(refused['known'])})"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/coordination/leses", 404, "no_such_slot"),
        ("/coordination/leses/seat.ceo", 404, "no_such_slot"),
        ("/coordination/ledger", 400, "bad_request"),
        ("/coordination/ledger?class=*", 400, "bad_request"),
        ("/coordination/ledger?class=ceo&limit=0", 400, "bad_request"),
        ("/coordination/ledger/ceo..e1", 400, "bad_request"),
        ("/coordination/ledger/ceo.e9", 404, "no_such_record"),
    ],
)
async def test_what_cannot_be_read_is_refused_by_name(
    api: httpx.AsyncClient, path: str, status: int, code: str
) -> None:
    answer = await api.get(path)

    assert (answer.status_code, answer.json()["error"]) == (status, code)


async def test_an_unreachable_store_is_no_empty_list(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.buckets["ledger"].cut = True

    answer = await api.get("/coordination/ledger", params={"class": "ceo"})

    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)


async def test_nobody_reads_them_without_a_token(node: SmallNode, tmp_path: Path) -> None:
    async with serving(node, config(tmp_path)) as server, asking(server, Accept="application/json") as stranger:
        answers = [
            await stranger.get(path) for path in ("/coordination", "/coordination/ledger", "/coordination/ledger/a")
        ]

    assert [answer.status_code for answer in answers] == [401, 401, 401]
