"""What the log says of where seats go, and of a node that takes none just now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from crewlet.seats import PlacedSeat, Placement
from tests.unit.seats.test_fleet import Company, seats

pytestmark = pytest.mark.virtual_time

Line = dict[str, object]


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    company = Company()
    yield company
    for host in company.hosts.values():
        await host.release_all()
    for leases in company.leases.values():
        await leases.close()
    assert company.attachments.doubled == []


def lines(said: list[Line], event: str) -> list[Line]:
    return [
        {key: line[key] for key in line if key not in ("event", "log_level")} for line in said if line["event"] == event
    ]


@pytest.mark.spec("S-213")
async def test_the_log_says_what_a_pass_found_and_who_took_and_gave_back_which_seat_under_which_epoch(
    company: Company,
) -> None:
    with capture_logs() as found:
        host = await company.node("a", [PlacedSeat("ceo"), PlacedSeat("vault", Placement("other"))])
        await host.release_all()

    said: list[Line] = [{**line} for line in found]
    assert lines(said, "seat_claimed") == [{"seat": "ceo", "epoch": 1}]
    assert lines(said, "seat_attached") == [{"seat": "ceo", "epoch": 1}]
    assert lines(said, "seat_detached") == [{"seat": "ceo", "epoch": 1, "mode": "voluntary", "reason": "drain"}]
    assert lines(said, "seats_unplaceable") == [{"seats": ["vault"]}]
    assert [(line["held"], line["room"]) for line in lines(said, "seat_sweep")] == [(0, 1)]


@pytest.mark.spec("S-213")
async def test_a_claim_that_an_older_build_forbids_names_its_protocol(company: Company) -> None:
    await company.node("old", seats(1), protocol=3)

    with capture_logs() as found:
        await company.node("new", seats(4))

    assert [(line["floor"], line["log_level"]) for line in found if "older_protocol" in line["event"]] == [
        (3, "warning")
    ]


@pytest.mark.spec("S-033")
async def test_the_part_of_a_node_that_is_not_ready_is_kept_for_it_and_told_as_nobodys_by_nobody(
    company: Company,
) -> None:
    behind = ["its copy is behind"]
    with capture_logs() as found:
        ready = await company.node("a", seats(8))
        slow = await company.node("b", seats(8), withheld=lambda: behind[0])
        await asyncio.sleep(120.0)
        meanwhile = (company.held_by(ready), company.held_by(slow))
        behind[0] = ""
        await asyncio.sleep(30.0)

    assert meanwhile == (4, 0)
    assert (company.held_by(ready), company.held_by(slow)) == (4, 4)
    assert [line for line in found if line["event"] == "seats_unplaceable"] == []


@pytest.mark.spec("S-033")
async def test_a_node_whose_teardowns_fail_leaves_what_they_cost_it_to_its_peer(company: Company) -> None:
    stuck = await company.node("a", seats(4))
    await asyncio.sleep(30.0)
    company.hooks["a:0"].stuck = {"s0", "s1"}
    with capture_logs() as found:
        stuck.apply(seats(4), anew={"s0", "s1"})
        other = await company.node("b", seats(4))
        await asyncio.sleep(400.0)

    assert (stuck.held(), {*other.held()}) == ((), {"s2", "s3"})
    assert "seat_still_unproven" in {line["event"] for line in found}
    assert "seats_unplaceable" not in {line["event"] for line in found}
    company.hooks["a:0"].stuck = set()
