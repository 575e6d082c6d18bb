"""Several hosts over one store: seats are divided, move with their nodes, and come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import KvLeases, Lease, Leases, seat_resource
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.seats import Host, HostConfig, PlacedSeat, Placement, ReleaseMode
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time

_TTL_S = 45.0
_SWEEP_S = 5.0


@dataclass
class Attachments:
    """Who has which seat attached, over all nodes; two at once is what must never be."""

    holders: dict[str, str] = field(default_factory=dict[str, str])
    moves: dict[str, int] = field(default_factory=dict[str, int])
    doubled: list[str] = field(default_factory=list[str])

    def attach(self, handle: str, node: str) -> None:
        if handle in self.holders:
            self.doubled.append(handle)
        self.holders[handle] = node
        self.moves[handle] = self.moves.get(handle, 0) + 1

    def detach(self, handle: str, node: str) -> None:
        if self.holders.get(handle) == node:
            del self.holders[handle]


@dataclass
class Hooks:
    """A node's hooks, which only tell who has what."""

    node: str
    attachments: Attachments
    stuck: set[str] = field(default_factory=set[str])
    leases: dict[str, Lease] = field(default_factory=dict[str, Lease])

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        self.attachments.attach(handle, self.node)
        self.leases[handle] = lease

    def on_established(self, handle: str) -> None:
        pass

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        if handle in self.stuck:
            raise OSError(f"{handle} does not let go")
        self.attachments.detach(handle, self.node)

    async def on_unproven(self, handle: str) -> None:
        pass

    async def on_proven(self, handle: str) -> None:
        pass


class Company:
    """A store of three buckets, and the hosts of the nodes that use it."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.buckets = [MemoryBucket(slot, clock) for slot in (LEASES, DUTIES, EPOCHS)]
        self.attachments = Attachments()
        self.hosts: dict[str, Host] = {}
        self.hooks: dict[str, Hooks] = {}
        self.leases: dict[str, KvLeases] = {}
        self.stores: dict[str, list[MemoryRecordStore]] = {}
        self._clock = clock

    async def node(
        self,
        name: str,
        company: Sequence[PlacedSeat],
        *,
        protocol: int = 4,
        withheld: Callable[[], str] = str,
        reached: Callable[[Leases], Leases] = lambda leases: leases,
        **about: object,
    ) -> Host:
        incarnation = f"{name}:{len(self.hosts)}"
        stores = [MemoryRecordStore(bucket) for bucket in self.buckets]
        leases = KvLeases(
            leases=stores[0],
            duties=stores[1],
            epochs=stores[2],
            clock=self._clock,
            ids=SeededIds(len(self.hosts)),
            protocol=protocol,
        )
        hooks = Hooks(incarnation, self.attachments)
        config = HostConfig(owner=incarnation, node_id=name, ttl_s=_TTL_S, **about)  # pyright: ignore[reportArgumentType]
        host = Host(leases=reached(leases), hooks=hooks, clock=self._clock, config=config, withheld=withheld)
        self.hosts[incarnation], self.hooks[incarnation], self.leases[incarnation] = host, hooks, leases
        self.stores[incarnation] = stores
        await host.start(company)
        return host

    def cut_off(self, incarnation: str) -> None:
        """The node reaches the store no more; it goes on believing what it believed for as long as it may."""
        for store in self.stores[incarnation]:
            store.link.cut = True

    def mended(self, incarnation: str) -> None:
        """The node reaches the store again."""
        for store in self.stores[incarnation]:
            store.link.cut = False

    def epochs(self, incarnation: str, handles: Sequence[str]) -> list[tuple[int, bool]]:
        """Under which epochs a node last took these seats, and whether each came after a lapse."""
        leases = self.hooks[incarnation].leases
        return [(leases[handle].epoch, leases[handle].after_lapse) for handle in handles]

    async def has_a_free_seat(self) -> bool:
        """Whether a seat that somebody held has no lease just now."""
        held = {lease.resource for lease in await next(iter(self.leases.values())).held("seat")}
        return any(seat_resource(handle) not in held for handle in self.attachments.moves)

    def held_by(self, host: Host) -> int:
        return len(host.held())


def seats(count: int, placement: Placement | None = None, prefix: str = "s") -> list[PlacedSeat]:
    return [PlacedSeat(f"{prefix}{number}", placement or Placement()) for number in range(count)]


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    company = Company()
    yield company
    for host in company.hosts.values():
        await host.release_all()
    for leases in company.leases.values():
        await leases.close()
    assert company.attachments.doubled == []


@pytest.mark.spec("S-019", "S-020", "S-025")
async def test_nodes_divide_the_seats_four_claims_a_pass(company: Company) -> None:
    one, two, three = [await company.node(name, seats(20)) for name in "abc"]
    first = company.held_by(one)

    await asyncio.sleep(_SWEEP_S + 1)
    second = company.held_by(one)
    await asyncio.sleep(6 * _SWEEP_S)

    assert (first, second > first, second <= 8) == (4, True, True)
    assert sorted(company.held_by(host) for host in (one, two, three)) == [6, 7, 7]


@pytest.mark.spec("S-023", "S-207")
async def test_a_node_that_joins_gets_its_share_two_a_pass(company: Company) -> None:
    first = await company.node("a", seats(8))
    await asyncio.sleep(2 * _SWEEP_S)
    alone = company.held_by(first)

    second = await company.node("b", seats(8))
    await asyncio.sleep(6 * _SWEEP_S)

    assert alone == 8
    assert (company.held_by(first), company.held_by(second)) == (4, 4)
    assert max(company.attachments.moves.values()) == 2


@pytest.mark.spec("C-107", "S-018")
async def test_seats_of_a_node_that_is_cut_off_move_once_their_leases_have_lapsed(company: Company) -> None:
    first, second = await company.node("a", seats(4)), await company.node("b", seats(4))
    await asyncio.sleep(6 * _SWEEP_S)
    had = first.held()

    company.cut_off("a:0")
    await asyncio.sleep(_TTL_S - 20)
    during = company.held_by(second)
    await asyncio.sleep(20 + 3 * _SWEEP_S)

    assert (len(had), during, company.held_by(second)) == (2, 2, 4)
    assert all(after_lapse for _, after_lapse in company.epochs("b:1", had))
    company.mended("a:0")


async def test_a_node_that_was_cut_off_stops_before_a_peer_can_begin(company: Company) -> None:
    first = await company.node("a", seats(4))
    await company.node("b", seats(4))
    await asyncio.sleep(6 * _SWEEP_S)
    had = first.held()

    company.cut_off("a:0")
    admitted_with_a_peer: list[str] = []
    for _ in range(90):
        await asyncio.sleep(1.0)
        taken = [handle for handle in had if company.hooks["b:1"].leases.get(handle)]
        admitted_with_a_peer += [handle for handle in taken if first.may_start(handle) is not None]

    assert {*had} <= {*company.hooks["b:1"].leases}
    assert admitted_with_a_peer == []
    company.mended("a:0")


@pytest.mark.spec("S-195")
async def test_seats_of_a_node_that_drains_move_within_passes_and_not_after_a_lapse(company: Company) -> None:
    first, second = await company.node("a", seats(4)), await company.node("b", seats(4))
    await asyncio.sleep(6 * _SWEEP_S)
    had = first.held()

    first.drain()
    await first.release_all()
    await asyncio.sleep(2 * _SWEEP_S)

    assert company.held_by(second) == 4
    assert not any(after_lapse for _, after_lapse in company.epochs("b:1", had))


@pytest.mark.spec("S-028")
async def test_a_drain_that_begins_within_a_pass_leaves_the_node_with_nothing(company: Company) -> None:
    first = await company.node("a", seats(40))

    sweeping = asyncio.create_task(asyncio.sleep(_SWEEP_S + 0.001))
    await sweeping
    first.drain()
    await first.release_all()
    await asyncio.sleep(2 * _SWEEP_S)

    assert first.held() == ()
    assert company.attachments.holders == {}


@pytest.mark.spec("S-044", "S-045", "S-046", "S-078", "S-214", "S-215")
async def test_a_seat_that_does_not_let_go_is_kept_renewed_and_told_until_it_does(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = await company.node("a", seats(2)), await company.node("b", seats(2))
    await asyncio.sleep(6 * _SWEEP_S)
    (stuck,) = first.held()
    epoch = first.epoch_of(stuck)
    assert epoch is not None
    fence = first.fence(stuck, epoch)
    company.hooks["a:0"].stuck = {stuck}

    first.withdraw("a test")
    await asyncio.sleep(25 * _TTL_S / 3)
    during = (first.held(), [*first.unproven()], stuck in second.held())
    fence.check()
    company.hooks["a:0"].stuck = set()
    await asyncio.sleep(_TTL_S)

    said = capsys.readouterr().out
    assert during == ((), [stuck], False)
    assert first.unproven() == {}
    assert stuck in second.held()
    assert [
        said.count(name) for name in ("seat_release_unproven", "seat_still_unproven", "seat_release_recovered")
    ] == [
        1,
        1,
        1,
    ]


@pytest.mark.spec("S-193", "S-203")
async def test_a_node_of_a_higher_protocol_waits_for_the_last_lower_one(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    older = await company.node("a", seats(4), protocol=3)
    newer = await company.node("b", seats(4), protocol=4)
    await asyncio.sleep(6 * _SWEEP_S)
    before = company.held_by(newer)

    await older.release_all()
    await asyncio.sleep(3 * _SWEEP_S)

    assert (before, company.held_by(newer)) == (0, 4)
    assert "seat_claims_blocked_by_older_protocol" in capsys.readouterr().out


@pytest.mark.spec("S-026", "S-027")
async def test_a_changed_company_is_looked_at_early_once_in_an_interval(company: Company) -> None:
    host = await company.node("a", seats(2))
    await asyncio.sleep(_SWEEP_S / 2)

    host.apply(seats(3))
    await asyncio.sleep(0.1)
    first = company.held_by(host)
    host.apply(seats(4))
    await asyncio.sleep(0.1)
    second = company.held_by(host)
    await asyncio.sleep(_SWEEP_S)

    assert (first, second, company.held_by(host)) == (3, 3, 4)


async def test_a_seat_that_left_the_company_is_given_back(company: Company) -> None:
    host = await company.node("a", seats(3))

    host.apply(seats(2))
    await asyncio.sleep(0.1)

    assert host.held() == ("s0", "s1")
    assert "s2" not in company.attachments.holders


@pytest.mark.spec("S-143")
async def test_the_lease_of_a_seat_that_left_goes_in_the_pass_that_its_apply_asked_for_else_in_the_next_one(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    host = await company.node("a", seats(3))
    held: list[list[str]] = []

    for left in (2, 1):
        # One pass an interval comes early: the second change has to wait for the next.
        host.apply(seats(left))
        await asyncio.sleep(0.1)
        held.append(sorted(lease.resource for lease in await company.leases["a:0"].held("seat")))
    await asyncio.sleep(_SWEEP_S)
    held.append([lease.resource for lease in await company.leases["a:0"].held("seat")])

    assert held == [["seat:s0", "seat:s1"], ["seat:s0", "seat:s1"], ["seat:s0"]]
    said = [line for line in capsys.readouterr().out.splitlines() if "seat_released_role_gone" in line]
    assert [handle for handle in ("s0", "s1", "s2") for line in said if handle in line] == ["s1", "s2"]


@pytest.mark.spec("S-210")
async def test_a_pinned_seat_runs_where_it_is_pinned_and_nowhere_else(company: Company) -> None:
    pinned = [*seats(4), *seats(1, Placement(labels=(("gpu", "yes"),)), "g")]
    plain = await company.node("a", pinned)
    await asyncio.sleep(2 * _SWEEP_S)
    unplaceable = [seat.handle for seat in plain.unplaceable()]

    special = await company.node("b", pinned, labels={"gpu": "yes"})
    await asyncio.sleep(6 * _SWEEP_S)

    assert unplaceable == ["g0"]
    assert "g0" in special.held()
    assert plain.unplaceable() == ()


@pytest.mark.spec("S-030")
async def test_a_node_that_withdraws_gives_its_seats_to_its_peers_and_takes_part_again(company: Company) -> None:
    first, second = await company.node("a", seats(4)), await company.node("b", seats(4))
    await asyncio.sleep(6 * _SWEEP_S)

    first.withdraw("cannot reach its records")
    await asyncio.sleep(3 * _SWEEP_S)
    during = (company.held_by(first), company.held_by(second))
    first.serve_again()
    await asyncio.sleep(_TTL_S)

    assert during == (0, 4)
    assert (company.held_by(first), company.held_by(second)) == (2, 2)


async def test_another_process_under_the_same_node_id_runs_nothing_and_says_so(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    first = await company.node("a", seats(2))
    twin = await company.node("a", seats(2))
    await asyncio.sleep(3 * _SWEEP_S)

    assert (company.held_by(first), company.held_by(twin)) == (2, 0)
    assert "node_id_taken" in capsys.readouterr().out
    assert "runs under this node.id" in twin.trouble
    assert first.trouble == ""


async def test_a_role_that_no_live_node_has_is_told_once_and_so_is_its_return(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    await company.node("a", seats(2), roles=("seats", "data"))
    await asyncio.sleep(3 * _SWEEP_S)
    before = capsys.readouterr().out

    await company.node("b", seats(2), roles=("ingress", "workers", "data"))
    await asyncio.sleep(3 * _SWEEP_S)
    after = capsys.readouterr().out

    assert (before.count("fleet_role_unmanned"), after.count("fleet_role_manned")) == (2, 2)


async def test_a_node_without_the_role_holds_no_seat_and_takes_no_share(company: Company) -> None:
    runs = await company.node("a", seats(8))
    routes = await company.node("b", seats(8), roles=("ingress", "data"))
    await asyncio.sleep(3 * _SWEEP_S)

    assert (company.held_by(runs), company.held_by(routes)) == (8, 0)


async def test_a_node_whose_leases_are_not_renewed_for_two_beats_says_so_until_they_are(company: Company) -> None:
    host = await company.node("a", seats(1))
    beat_s = _TTL_S / 3
    company.cut_off("a:0")

    await asyncio.sleep(beat_s)
    before = host.trouble
    await asyncio.sleep(2 * beat_s)
    during = host.trouble
    company.mended("a:0")
    await asyncio.sleep(2 * beat_s)

    assert before == ""
    assert "leases have not been renewed for" in during
    assert host.trouble == ""
