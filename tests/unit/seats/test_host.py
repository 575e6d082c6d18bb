"""Holding seats: claims, admission by freshness, the fence, and letting go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from crewlet.backends.memory.leases import MemoryLeases
from crewlet.base.errors import Fenced, StartRefused, Unavailable
from crewlet.coordination import Lease
from crewlet.seats import Host, HostConfig, PlacedSeat, ReleaseMode
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

_TTL_S = 45.0
_HEARTBEAT_S = 15.0


@dataclass
class _Hooks:
    """Records what the host asks of its node; a seat in ``broken`` cannot be established, in ``stuck`` not released.

    One in ``slow_s`` takes its time, one in ``faulty`` meets a defect of ours.
    """

    broken: set[str] = field(default_factory=set[str])
    slow_s: dict[str, float] = field(default_factory=dict[str, float])
    faulty: set[str] = field(default_factory=set[str])
    stuck: set[str] = field(default_factory=set[str])
    log: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    on_admission: Callable[[str], None] = field(default=lambda _: None)

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        self.log.append(("acquire", handle))
        self.on_admission(handle)
        await asyncio.sleep(self.slow_s.get(handle, 0.0))
        if handle in self.broken:
            raise StartRefused("no inbox")
        if handle in self.faulty:
            raise KeyError(handle)

    def on_established(self, handle: str) -> None:
        self.log.append(("established", handle))
        self.on_admission(handle)

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        self.log.append((f"release {mode}", handle))
        if handle in self.stuck:
            raise StartRefused("a child does not die")

    async def on_unproven(self, handle: str) -> None:
        self.log.append(("unproven", handle))

    async def on_proven(self, handle: str) -> None:
        self.log.append(("proven", handle))


class _Flaky(MemoryLeases):
    """The twin, behind a store that can be cut off."""

    cut = False
    takes_s = 0.0

    async def renew(self, lease: Lease, *, ttl_s: float, data: Mapping[str, Any] | None = None) -> Lease | None:
        await asyncio.sleep(self.takes_s)
        if self.cut:
            raise Unavailable("cut off")
        return await super().renew(lease, ttl_s=ttl_s, data=data)


class _SleepyClock(VirtualClock):
    """Counts the time that the machine slept, which the loop's own clock does not."""

    slept_s = 0.0

    def elapsed_s(self) -> float:
        return super().elapsed_s() + self.slept_s


def seats(*handles: str) -> list[PlacedSeat]:
    return [PlacedSeat(handle) for handle in handles]


@dataclass
class _World:
    clock: _SleepyClock
    leases: _Flaky
    hooks: _Hooks
    host: Host


@pytest.fixture
async def world() -> AsyncIterator[_World]:
    clock = _SleepyClock()
    leases, hooks = _Flaky(clock), _Hooks()
    config = HostConfig(owner="node-0:1", node_id="node-0", ttl_s=_TTL_S)
    host = Host(leases=leases, hooks=hooks, clock=clock, config=config)
    yield _World(clock, leases, hooks, host)
    await host.release_all()


async def test_a_node_alone_holds_every_seat(world: _World) -> None:
    """Every seat is claimed, established and admits turns under the epoch of its lease."""
    await world.host.start(seats("ceo", "cto"))

    assert world.host.held() == ("ceo", "cto")
    assert world.host.may_start("ceo") == 1
    assert {lease.resource for lease in await world.leases.held("seat")} == {"seat:ceo", "seat:cto"}


@pytest.mark.spec("S-037")
async def test_a_seat_admits_turns_from_the_moment_its_node_is_told_and_not_before(world: _World) -> None:
    """Work that comes while the seat is established is held back for milliseconds, not until the next heartbeat."""
    during: list[int | None] = []
    world.hooks.on_admission = lambda handle: during.append(world.host.may_start(handle))

    await world.host.start(seats("ceo"))

    assert [step for step, _ in world.hooks.log] == ["acquire", "established"]
    assert during == [None, 1]


@pytest.mark.spec("S-053")
async def test_a_grant_admits_turns_for_one_heartbeat_after_its_last_renew(world: _World) -> None:
    """A seat that is held but was not proven lately starts nothing."""
    await world.host.start(seats("ceo"))
    world.leases.cut = True

    await asyncio.sleep(_HEARTBEAT_S - 0.1)
    fresh = world.host.may_start("ceo")
    await asyncio.sleep(0.2)

    assert fresh == 1
    assert world.host.may_start("ceo") is None
    assert world.host.epoch_of("ceo") == 1


async def test_a_healthy_hour_never_reads_as_stale(world: _World) -> None:
    """Renews start early enough that a turn may start at any moment."""
    await world.host.start(seats("ceo"))

    admitted: list[int | None] = []
    for _ in range(3600):
        await asyncio.sleep(1.0)
        admitted.append(world.host.may_start("ceo"))

    assert set(admitted) == {1}


async def test_a_store_that_takes_its_time_lets_no_grant_go_stale(world: _World) -> None:
    """Renews start as often as they would where it answers at once: what one takes is not added to the next."""
    await world.host.start(seats("ceo"))
    world.leases.takes_s = 2.5

    admitted: list[int | None] = []
    for _ in range(600):
        await asyncio.sleep(1.0)
        admitted.append(world.host.may_start("ceo"))

    assert set(admitted) == {1}


@pytest.mark.spec("S-056", "C-004")
async def test_an_outage_keeps_the_seat_and_stops_its_turns_until_it_is_over(world: _World) -> None:
    """The consumer is told at both edges; nothing is released over a store that does not answer for a while."""
    await world.host.start(seats("ceo"))
    world.leases.cut = True
    await asyncio.sleep(_HEARTBEAT_S)
    world.leases.cut = False
    await asyncio.sleep(_HEARTBEAT_S)

    assert [step for step, _ in world.hooks.log] == ["acquire", "established", "unproven", "proven"]
    assert world.host.may_start("ceo") == 1


@pytest.mark.spec("S-042")
async def test_an_outage_longer_than_the_ttl_ends_in_a_fenced_release(world: _World) -> None:
    """Ambiguity is not loss, but a peer may have taken the seat by then."""
    await world.host.start(seats("ceo"))
    world.leases.cut = True

    await asyncio.sleep(_TTL_S + _HEARTBEAT_S)

    assert (f"release {ReleaseMode.FENCED}", "ceo") in world.hooks.log


@pytest.mark.spec("S-076")
async def test_the_fence_closes_on_another_epoch_of_the_same_seat(world: _World) -> None:
    """A seat lost and claimed again here is another grant: what was admitted under the first stops."""
    await world.host.start(seats("ceo"))
    fence = world.host.fence("ceo", 1)
    fence.check()
    lease = (await world.leases.held("seat"))[0]
    await world.leases.release(lease)

    await asyncio.sleep(2 * _HEARTBEAT_S)

    assert world.host.epoch_of("ceo") == 2
    with pytest.raises(Fenced, match="epoch 1 is over"):
        fence.check()


@pytest.mark.spec("S-077")
async def test_an_unreachable_store_does_not_close_the_fence(world: _World) -> None:
    """It says nothing about ownership."""
    await world.host.start(seats("ceo"))
    fence = world.host.fence("ceo", 1)
    world.leases.cut = True

    await asyncio.sleep(_HEARTBEAT_S + 1)

    assert world.host.may_start("ceo") is None
    fence.check()


async def test_a_seat_that_cannot_be_established_is_free_again(world: _World) -> None:
    """Its lease is given back, and it is tried again at the next heartbeat."""
    world.hooks.broken = {"ceo"}
    await world.host.start(seats("ceo"))
    free = await world.leases.held("seat")
    world.hooks.broken = set()

    await asyncio.sleep(_HEARTBEAT_S)

    assert free == []
    assert world.host.held() == ("ceo",)


@pytest.mark.spec("S-044")
async def test_a_teardown_that_is_not_proven_keeps_the_lease(world: _World) -> None:
    """Nothing starts on the seat here, and nobody else can take it, until a retry of the teardown succeeds."""
    world.hooks.broken = world.hooks.stuck = {"ceo"}
    await world.host.start(seats("ceo"))

    await asyncio.sleep(3 * _TTL_S)
    stuck = (world.host.held(), world.host.may_start("ceo"), len(await world.leases.held("seat")))
    world.hooks.broken = world.hooks.stuck = set()
    await asyncio.sleep(2 * _HEARTBEAT_S)

    assert stuck == ((), None, 1)
    assert world.host.held() == ("ceo",)


async def test_draining_admits_nothing_and_then_gives_every_seat_back(world: _World) -> None:
    """What is held stays until it is released, voluntarily, so that a successor need not wait for a lapse."""
    await world.host.start(seats("ceo"))

    world.host.drain()
    admitted = world.host.may_start("ceo")
    await world.host.release_all()

    assert admitted is None
    assert world.hooks.log[-1] == (f"release {ReleaseMode.VOLUNTARY}", "ceo")
    assert await world.leases.held("seat") == []


@pytest.mark.spec("S-053")
async def test_a_seat_that_takes_minutes_to_establish_leaves_the_others_fresh(world: _World) -> None:
    """Renews run beside the claims, from the first claim on: a slow tool server costs its own seat its time."""
    world.hooks.slow_s = {"cto": 3 * _TTL_S}
    starting = asyncio.create_task(world.host.start(seats("ceo", "cto")))

    admitted: list[int | None] = []
    await asyncio.sleep(0.1)
    for _ in range(int(3 * _TTL_S) - 1):
        admitted.append(world.host.may_start("ceo"))
        await asyncio.sleep(1.0)
    await starting

    assert set(admitted) == {1}
    assert world.host.held() == ("ceo", "cto")
    assert world.host.may_start("cto") == 1
    assert (f"release {ReleaseMode.FENCED}", "ceo") not in world.hooks.log


async def test_a_lease_lost_while_its_seat_is_established_ends_in_one_release(world: _World) -> None:
    """The claim gives it up when the step that runs has ended, and it is tried again."""
    world.hooks.slow_s = {"ceo": 2 * _HEARTBEAT_S}
    starting = asyncio.create_task(world.host.start(seats("ceo")))
    await asyncio.sleep(1.0)
    await world.leases.release((await world.leases.held("seat"))[0])

    await starting
    given_up = [*world.hooks.log]
    world.hooks.slow_s = {}
    await asyncio.sleep(_HEARTBEAT_S)

    assert given_up == [("acquire", "ceo"), (f"release {ReleaseMode.FENCED}", "ceo")]
    assert world.host.may_start("ceo") == 2


@pytest.mark.parametrize("during", ["start", "heartbeat"])
async def test_a_defect_met_with_one_seat_costs_no_other_its_renews(world: _World, during: str) -> None:
    """The seat is tried again; a heartbeat that died would leave every seat of the node deaf, with health green."""
    world.hooks.faulty = {"cto"} if during == "start" else set()
    await world.host.start(seats("ceo", "cto"))
    missing = world.host.missing()
    world.hooks.faulty = {"cto"}
    await world.leases.release(next(each for each in await world.leases.held("seat") if each.resource == "seat:ceo"))

    await asyncio.sleep(3 * _TTL_S)
    world.hooks.faulty = set()
    await asyncio.sleep(_HEARTBEAT_S)

    assert missing == (("cto",) if during == "start" else ())
    assert (world.host.may_start("ceo"), world.host.missing()) == (2, ())


async def test_a_hook_that_breaks_on_a_renew_does_not_end_the_renews(
    world: _World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the node does with the news, ownership is kept."""

    async def broken(handle: str) -> None:
        raise LookupError(handle)

    monkeypatch.setattr(world.hooks, "on_proven", broken)
    await world.host.start(seats("ceo"))

    await asyncio.sleep(3 * _TTL_S)

    assert world.host.may_start("ceo") == 1


@pytest.mark.spec("S-055")
async def test_a_grant_that_reads_as_stale_is_told_and_renewed_at_once(
    world: _World, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a sleep of the machine the first delivery is deferred; the seat must not stay deaf until the next beat."""
    await world.host.start(seats("ceo"))
    world.clock.slept_s += _HEARTBEAT_S + 5

    refused = world.host.may_start("ceo")
    await asyncio.sleep(0.1)

    assert refused is None
    assert "seat_admission_stale" in capsys.readouterr().out
    assert world.hooks.log[-1] == ("proven", "ceo")
    assert world.host.may_start("ceo") == 1


async def test_a_machine_that_slept_keeps_the_seats_of_a_node_without_peers() -> None:
    """The turns that ran when the lid was closed go on, under the epoch they began with."""
    clock, hooks = _SleepyClock(), _Hooks()
    config = HostConfig(owner="node-0:1", node_id="node-0", ttl_s=_TTL_S, alone=True)
    host = Host(leases=MemoryLeases(clock, alone=True), hooks=hooks, clock=clock, config=config)
    await host.start(seats("ceo"))
    fence = host.fence("ceo", 1)
    clock.slept_s += 8 * 3600

    await asyncio.sleep(2 * _HEARTBEAT_S)

    fence.check()
    assert host.may_start("ceo") == 1
    assert [step for step, _ in hooks.log][:2] == ["acquire", "established"]
    assert "release fenced" not in {step for step, _ in hooks.log}
    await host.release_all()


async def test_an_end_does_not_wait_for_a_seat_that_is_being_established(world: _World) -> None:
    """Its hook is cut short and undone: a tool server that hangs would hold the process up for minutes."""
    world.hooks.slow_s = {"ceo": 3600.0}
    starting = asyncio.create_task(world.host.start(seats("ceo")))
    await asyncio.sleep(1.0)

    starting.cancel()
    world.host.drain()
    async with asyncio.timeout(5.0):
        await world.host.release_all()

    assert world.hooks.log == [("acquire", "ceo"), (f"release {ReleaseMode.FENCED}", "ceo")]
    assert await world.leases.held("seat") == []


@pytest.mark.spec("S-054")
def test_a_heartbeat_is_a_third_of_the_lease_and_renews_begin_before_it_is_over() -> None:
    shipped = HostConfig(owner="a:1", node_id="a")

    assert (shipped.ttl_s, shipped.heartbeat_s) == (45.0, 15.0)
    assert shipped.renew_every_s < shipped.heartbeat_s
    assert HostConfig(owner="a:1", node_id="a", ttl_s=9.0).heartbeat_s == 3.0
