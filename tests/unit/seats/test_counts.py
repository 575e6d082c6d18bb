"""What nodes say of how many seats they hold decides only whether to look: never who holds what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from crewlet.coordination import Lease
from crewlet.seats import node_row
from tests.unit.seats.test_fleet import Company, seats

pytestmark = pytest.mark.virtual_time

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_TTL_S = 45.0
_SWEEP_S = 5.0
_FEW_SWEEPS_S = 6 * _SWEEP_S


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    company = Company()
    yield company
    for hooks in company.hooks.values():
        hooks.stuck.clear()
    for host in company.hosts.values():
        await host.release_all()
    for leases in company.leases.values():
        await leases.close()
    assert company.attachments.doubled == []


@pytest.mark.spec("S-205")
@pytest.mark.parametrize("said", [None, "many", -3, 2.5, True, [7]])
def test_a_count_that_cannot_be_read_is_none(said: object) -> None:
    lease = Lease("node:a", "a:1", 1, _AT, _AT, data={"roles": ["seats"], "seats_held": said})

    assert node_row(lease).seats_held == 0


@pytest.mark.spec("S-205")
async def test_a_count_that_is_too_low_costs_reads_and_takes_nothing(company: Company) -> None:
    """A node of an older build, that says nothing of its seats, holds its peer's share too."""
    first = await company.node("a", seats(2))
    await company.leases["a:0"].claim("node:older", owner="older:1", ttl_s=_TTL_S, data={"roles": ["seats"]})
    for number in range(2, 4):
        await company.leases["a:0"].claim(f"seat:s{number}", owner="older:1", ttl_s=_TTL_S)

    first.apply(seats(4))
    await asyncio.sleep(_FEW_SWEEPS_S)

    assert sum(row.seats_held for row in first.nodes()) == 2
    assert first.held() == ("s0", "s1")


@pytest.mark.spec("S-205")
async def test_what_a_node_said_counts_no_more_once_its_presence_has_lapsed(company: Company) -> None:
    first, second = await company.node("a", seats(4)), await company.node("b", seats(4))
    await asyncio.sleep(_FEW_SWEEPS_S)
    before = {row.node_id for row in second.nodes()}

    company.cut_off("a:0")
    await asyncio.sleep(_TTL_S + _FEW_SWEEPS_S)

    assert before == {"a", "b"}
    assert {row.node_id for row in second.nodes()} == {"b"}
    assert len(second.held()) == 4
    company.mended("a:0")
    assert first.held() == ()


@pytest.mark.spec("S-205")
async def test_a_pass_that_cannot_read_who_is_there_claims_and_gives_back_nothing(company: Company) -> None:
    first = await company.node("a", seats(4))
    await company.node("b", seats(4))
    await asyncio.sleep(_FEW_SWEEPS_S)
    held, nodes = first.held(), first.nodes()

    company.cut_off("a:0")
    first.apply(seats(8))
    await asyncio.sleep(3 * _SWEEP_S)

    assert (first.held(), first.nodes()) == (held, nodes)
    company.mended("a:0")


@pytest.mark.spec("S-206")
async def test_a_seat_that_left_the_company_and_does_not_let_go_hides_no_free_seat(company: Company) -> None:
    """The node that is stuck with it is the only one with room: it must not take itself for full."""
    hosts = {f"{name}:{number}": await company.node(name, seats(3)) for number, name in enumerate("ab")}
    await asyncio.sleep(_FEW_SWEEPS_S)
    stuck_with, host = next((name, host) for name, host in hosts.items() if len(host.held()) == 1)
    (leaving,) = host.held()
    company.hooks[stuck_with].stuck.add(leaving)

    staying = [seat for seat in seats(4) if seat.handle != leaving]
    for each in hosts.values():
        each.apply(staying)
    await asyncio.sleep(_FEW_SWEEPS_S)

    assert host.held() == ("s3",)
    assert {row.node_id: row.seats_held for row in host.nodes()} == {"a": 2, "b": 1} | (
        {"a": 1, "b": 2} if stuck_with == "a:0" else {}
    )


@pytest.mark.spec("S-206")
async def test_a_seat_that_does_not_let_go_and_left_the_company_keeps_no_peer_from_a_free_one(company: Company) -> None:
    hosts = {f"{name}:{number}": await company.node(name, seats(4)) for number, name in enumerate("abc")}
    await asyncio.sleep(_FEW_SWEEPS_S)
    stuck_with, host = next((name, host) for name, host in hosts.items() if host.held())
    leaving = host.held()[0]
    company.hooks[stuck_with].stuck.add(leaving)

    staying = [seat for seat in seats(5) if seat.handle != leaving]
    for each in hosts.values():
        each.apply(staying)
    await asyncio.sleep(_FEW_SWEEPS_S)

    assert sorted(handle for each in hosts.values() for handle in each.held()) == sorted(s.handle for s in staying)
