"""A seat that a peer gave back for a newcomer goes to the newcomer, whatever a pass that began before had in mind."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, Lease, Leases
from crewlet.seats import Host
from crewlet.testing.waiting import wait_until
from tests.unit.seats.test_fleet import Company, company, seats

__all__ = ["company"]

pytestmark = pytest.mark.virtual_time

_SEATS = 12
_BALANCED_S = 60.0
_WAITS_MAX_S = 300.0


@dataclass
class SlowClaims:
    """Leases whose claims of seats wait until they may, and that count the listings of nodes.

    ``blind``: the nodes cannot be listed, which is said after ``silent_s``. ``uncounted``: no node is listed.
    """

    leases: Leases | None = None
    may_claim: asyncio.Event = field(default_factory=asyncio.Event)
    waits: bool = False
    blind: bool = False
    uncounted: bool = False
    silent_s: float = 0.0
    looks: int = 0

    def over(self, leases: Leases) -> Leases:
        self.leases = leases
        self.may_claim.set()
        return cast("Leases", self)

    async def held(self, kind: str) -> list[Lease]:
        assert self.leases is not None
        self.looks += kind == "node"
        if self.blind:
            await asyncio.sleep(self.silent_s)
            raise Unavailable("the nodes cannot be listed")
        return [] if self.uncounted else await self.leases.held(kind)

    async def claim(self, resource: str, **how: Any) -> Lease | ClaimRefused:  # noqa: ANN401 - handed on
        assert self.leases is not None
        self.waits = not self.may_claim.is_set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAITS_MAX_S):
                await self.may_claim.wait()
        return await self.leases.claim(resource, **how)

    def __getattr__(self, verb: str) -> Any:  # noqa: ANN401 - the leases' own verb
        return getattr(self.leases, verb)


async def test_a_pass_that_began_before_a_node_came_takes_nothing_of_what_was_given_back_for_it(
    company: Company,
) -> None:
    slow = SlowClaims()
    a = await company.node("a", seats(_SEATS))
    b = await company.node("b", seats(_SEATS), reached=slow.over)
    c = await company.node("c", seats(_SEATS))
    await wait_until(lambda: [len(host.held()) for host in (a, b, c)] == [4, 4, 4], timeout_s=_BALANCED_S)
    before = dict(company.attachments.moves)

    # While b's pass of a fleet of two waits in its first claim, a takes two seats of c's and gives them back for c.
    slow.may_claim.clear()
    await c.release_all()
    await wait_until(lambda: len(a.held()) == 6 and slow.waits, timeout_s=_BALANCED_S)
    # Its passes come between a's, or it would have what a gives back at the same moment.
    await asyncio.sleep(limits.SEAT_SWEEP_EVERY_S / 2)
    await company.node("c", seats(_SEATS))
    await wait_until(lambda: len(a.held()) == 4, timeout_s=_BALANCED_S)
    await wait_until(company.has_a_free_seat)
    looks = slow.looks
    slow.may_claim.set()
    await asyncio.sleep(0.1)
    looks_then = slow.looks - looks
    await asyncio.sleep(_BALANCED_S)

    moves = [moves - before[handle] for handle, moves in company.attachments.moves.items()]
    assert sorted(moves) == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2]
    # One by the claim that ended that pass, one by the pass that had come due meanwhile.
    assert looks_then == 2


async def test_what_the_nodes_are_is_not_asked_again_for_seats_that_nobody_gave_back(company: Company) -> None:
    counted = SlowClaims()

    await company.node("a", seats(4), reached=counted.over)

    assert counted.looks == 1


async def given_back_while_a_peer_claims(company: Company, slow: SlowClaims) -> Host:
    """A node that holds one of two seats, and whose claim of the other, which was given back, waits."""
    a = await company.node("a", seats(2))
    b = await company.node("b", seats(2), reached=slow.over)
    await wait_until(lambda: (len(a.held()), len(b.held())) == (1, 1), timeout_s=_BALANCED_S)
    slow.may_claim.clear()
    await a.release_all()
    await wait_until(lambda: slow.waits, timeout_s=_BALANCED_S)
    return b


@pytest.mark.parametrize("silent_s", [0.0, 600.0])
async def test_a_second_look_that_fails_takes_nothing_away(company: Company, silent_s: float) -> None:
    slow = SlowClaims(silent_s=silent_s)
    b = await given_back_while_a_peer_claims(company, slow)

    slow.blind = True
    slow.may_claim.set()

    await wait_until(lambda: len(b.held()) == 2, timeout_s=20.0, exactly=True)


async def test_a_node_that_its_peers_do_not_count_any_more_keeps_nothing_that_was_given_back(company: Company) -> None:
    slow = SlowClaims()
    b = await given_back_while_a_peer_claims(company, slow)

    slow.uncounted = True
    slow.may_claim.set()
    await asyncio.sleep(_BALANCED_S)

    assert len(b.held()) == 1
