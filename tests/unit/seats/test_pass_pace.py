"""Passes come at their pace however long one takes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from crewlet.coordination import Lease, Leases
from crewlet.seats import SWEEP, Host, HostConfig
from crewlet.testing import VirtualClock
from tests.unit.coordination.lease_rig import Rig
from tests.unit.seats.test_fleet import Attachments, Hooks, seats

pytestmark = pytest.mark.virtual_time

_SWEEP_S = 5.0
_LISTING_S = 2.0


class FarAway:
    """Leases of a store that takes long to say who is there."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    async def held(self, kind: str) -> list[Lease]:
        await asyncio.sleep(_LISTING_S)
        return await self._leases.held(kind)

    def __getattr__(self, verb: str) -> Any:  # noqa: ANN401 - the leases' own verb
        return getattr(self._leases, verb)


@pytest.mark.spec("S-025")
async def test_a_pass_that_takes_long_makes_no_other_late() -> None:
    rig, passes = Rig(), list[str]()
    async with rig.stack:
        host = Host(
            leases=cast("Leases", FarAway(rig.process().leases)),
            hooks=Hooks("a", Attachments()),
            clock=VirtualClock(),
            config=HostConfig(owner="a:1", node_id="a", sweep_every_s=_SWEEP_S),
            beat=lambda loop: passes.append(loop) if loop == SWEEP else None,
        )
        await host.start(seats(2))

        before = len(passes)
        await asyncio.sleep(12 * _SWEEP_S)
        after = len(passes)
        await host.release_all()

    assert after - before in {11, 12}
