"""A node with room among many seats that peers hold finds the free ones without asking for each."""

from __future__ import annotations

from typing import Any, cast

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, Lease, Leases, seat_resource
from crewlet.seats import Host, HostConfig
from crewlet.testing import VirtualClock
from tests.unit.coordination.lease_rig import Rig
from tests.unit.seats.test_fleet import Attachments, Hooks, seats

pytestmark = pytest.mark.virtual_time

_SEATS = 400
_FREE = limits.SEAT_CLAIMS_PER_SWEEP


class Counted:
    """Leases that count the seats that were tried; ``listed``: whether all seats can be listed."""

    def __init__(self, leases: Leases, *, listed: bool) -> None:
        self._leases = leases
        self._listed = listed
        self.tried = 0

    async def held(self, kind: str) -> list[Lease]:
        if kind == "seat" and not self._listed:
            raise Unavailable("one of them cannot be read")
        return await self._leases.held(kind)

    async def claim(self, resource: str, **how: Any) -> Lease | ClaimRefused:  # noqa: ANN401 - handed on
        self.tried += resource.startswith("seat:")
        return await self._leases.claim(resource, **how)

    def __getattr__(self, verb: str) -> Any:  # noqa: ANN401 - the leases' own verb
        return getattr(self._leases, verb)


@pytest.mark.parametrize("listed", [True, False])
async def test_a_few_free_seats_among_hundreds_are_found_in_one_pass(*, listed: bool) -> None:
    rig = Rig()
    async with rig.stack:
        peer, counted = rig.process().leases, Counted(rig.process().leases, listed=listed)
        clock = VirtualClock()
        host = Host(
            leases=cast("Leases", counted),
            hooks=Hooks("a", Attachments()),
            clock=clock,
            config=HostConfig(owner="a:1", node_id="a", ttl_s=45.0),
        )
        for seat in seats(_SEATS)[_FREE:]:
            await peer.claim(seat_resource(seat.handle), owner="b:1", ttl_s=45.0)

        await host.start(seats(_SEATS))
        held, tried = host.held(), counted.tried
        await host.release_all()

    assert set(held) == {seat.handle for seat in seats(_FREE)}
    assert (tried <= limits.SEATS_REFUSED_UNLISTED_MAX + _FREE) is listed
