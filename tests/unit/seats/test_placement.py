"""Where seats belong: shares over live nodes, the order of claims, what is given back, and that it comes to rest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.seats.placement import (
    ANYWHERE,
    FleetNode,
    Pass,
    PlacedCompany,
    PlacedSeat,
    Placement,
    allowances,
    groups_of,
    plan_pass,
)

GPU = Placement(labels=(("gpu", "yes"),))


def fleet(*names: str) -> list[FleetNode]:
    return [FleetNode(node_id=name) for name in names]


def seats(count: int, placement: Placement = ANYWHERE, prefix: str = "s") -> list[PlacedSeat]:
    return [PlacedSeat(f"{prefix}{number}", placement) for number in range(count)]


def planned(
    company: Sequence[PlacedSeat],
    nodes: Sequence[FleetNode],
    me: FleetNode,
    *,
    held: Sequence[str] = (),
    stuck: Sequence[str] = (),
    hints: dict[str, str] | None = None,
) -> Pass:
    return plan_pass(PlacedCompany.of(company, me.node_id), nodes, me, held=held, stuck=stuck, hints=hints or {})


def room(plan: Pass) -> int:
    return sum(count for count, _ in plan.claims)


def test_a_share_is_the_seats_over_the_nodes_rounded_up() -> None:
    a, b, c = fleet("a", "b", "c")

    assert room(planned(seats(10), [a, b, c], a)) == 4


@pytest.mark.spec("S-022")
def test_room_in_one_group_is_no_room_in_another() -> None:
    plain, satellite = FleetNode(node_id="a"), FleetNode(node_id="b", labels={"gpu": "yes"})
    company = [*seats(4), *seats(1, GPU, "g")]

    plan = planned(company, [plain, satellite], satellite)

    assert [count for count, _ in plan.claims] == [1, 2]
    assert plan.claims[0][1] == ("g0",)


@pytest.mark.spec("S-021")
def test_groups_with_the_fewest_homes_come_first_and_in_them_the_seats_that_one_had() -> None:
    pinned = Placement(node="a")
    a, b = FleetNode(node_id="a", labels={"gpu": "yes"}), FleetNode(node_id="b", labels={"gpu": "yes"})
    company = [*seats(6), *seats(2, pinned, "p"), *seats(2, GPU, "g")]

    plan = planned(company, [a, b, FleetNode(node_id="c")], a, hints={"s5": "a", "s1": "b"})

    first, second, third = (handles for _, handles in plan.claims)
    assert ({*first}, {*second}) == ({"p0", "p1"}, {"g0", "g1"})
    assert third[0] == "s5"


def test_nodes_that_start_together_try_seats_in_orders_of_their_own() -> None:
    nodes = fleet("a", "b")

    one, other = (planned(seats(50), nodes, me).claims[0][1] for me in nodes)

    assert one != other
    assert {*one} == {*other}


@pytest.mark.spec("S-023", "S-024")
def test_surplus_is_given_back_two_at_a_time_from_the_least_constrained_group() -> None:
    a, b = FleetNode(node_id="a", labels={"gpu": "yes"}), FleetNode(node_id="b", labels={"gpu": "yes"})
    company = [*seats(6), *seats(2, GPU, "g")]
    held = [seat.handle for seat in company]

    plan = planned(company, [a, b, FleetNode(node_id="c")], a, held=held)

    assert len(plan.releases) == 2
    assert {*plan.releases} < {seat.handle for seat in company if seat.placement == ANYWHERE}


def test_what_was_claimed_last_is_given_back_first() -> None:
    """What a restarting node left behind goes home, and nothing else moves."""
    a, b = fleet("a", "b")

    plan = planned(seats(6), [a, b], a, held=["s4", "s5", "s3", "s0", "s1"])

    assert plan.releases == ("s1", "s0")


def test_a_node_at_its_share_has_no_room_for_what_it_gave_back() -> None:
    a, b = fleet("a", "b")

    plan = planned(seats(4), [a, b], a, held=["s0", "s1"])

    assert (plan.claims, plan.releases) == ((), ())


@pytest.mark.spec("S-029")
def test_a_stuck_seat_squeezes_the_group_with_the_most_homes() -> None:
    a, b = FleetNode(node_id="a", labels={"gpu": "yes"}), FleetNode(node_id="b")
    company = [*seats(4), *seats(1, GPU, "g")]

    allowed = allowances(groups_of(company), [a, b], a, stuck=1)

    assert allowed == {GPU: 1, ANYWHERE: 1}


@pytest.mark.spec("S-030")
def test_a_withdrawn_node_has_no_share_and_its_peers_divide_without_it() -> None:
    a, b = FleetNode(node_id="a", withdrawn=True), FleetNode(node_id="b")

    withdrawn = planned(seats(4), [a, b], a, held=["s0", "s1", "s2"])
    peer = planned(seats(4), [a, b], b)

    assert (withdrawn.claims, withdrawn.releases) == ((), ("s0", "s1", "s2"))
    assert room(peer) == 4


def test_a_node_without_the_role_counts_in_no_share() -> None:
    a, b = FleetNode(node_id="a", places_seats=False), FleetNode(node_id="b")

    assert room(planned(seats(4), [a, b], b)) == 4
    assert planned(seats(4), [a, b], a).claims == ()


@pytest.mark.spec("S-032")
def test_a_group_that_no_live_node_matches_is_unplaceable() -> None:
    company = [*seats(2), *seats(1, GPU, "g")]
    withdrawn = FleetNode(node_id="b", labels={"gpu": "yes"}, withdrawn=True)

    plan = planned(company, [FleetNode(node_id="a"), withdrawn], FleetNode(node_id="a"))

    assert [seat.handle for seat in plan.unplaceable] == ["g0"]


@pytest.mark.spec("S-204")
def test_a_fleet_whose_counts_cover_every_placeable_seat_is_full() -> None:
    a = FleetNode(node_id="a")
    b = FleetNode(node_id="b", seats_held=4)
    company = [*seats(4), *seats(1, GPU, "g")]

    plan = planned(company, [a, b], a)

    assert (plan.fleet_full, plan.claims) == (True, ())
    assert not planned(company, [a, FleetNode(node_id="b", seats_held=3)], a).fleet_full


def test_seats_that_moved_away_or_left_are_named_apart() -> None:
    a = FleetNode(node_id="a")
    company = [PlacedSeat("stays"), PlacedSeat("moved", Placement(node="b"))]

    plan = planned(company, [a, FleetNode(node_id="b")], a, held=["stays", "moved", "removed"])

    assert (plan.misplaced, plan.gone, plan.releases) == (("moved",), ("removed",), ())


PLACEMENTS = st.sampled_from([ANYWHERE, GPU, Placement(node="n0"), Placement(labels=(("zone", "x"),))])
NODES = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.integers(0, 9).map(lambda number: number == 0)), min_size=1, max_size=6
)


@pytest.mark.spec("S-031")
@given(st.lists(PLACEMENTS, max_size=30), NODES)
def test_passes_come_to_rest_with_every_placeable_seat_held_once(
    placements: list[Placement], kinds: list[tuple[bool, bool, bool]]
) -> None:
    """Whoever held what before, passes of the nodes in turn end, and then nothing moves any more."""
    company = [PlacedSeat(f"s{number}", placement) for number, placement in enumerate(placements)]
    nodes = [
        FleetNode(
            node_id=f"n{number}",
            labels={"gpu": "yes" if gpu else "no", "zone": "x" if zone else "y"},
            withdrawn=withdrawn,
        )
        for number, (gpu, zone, withdrawn) in enumerate(kinds)
    ]
    holder = {seat.handle: "n0" for seat in company}

    for _ in range(3 * len(company) + 3):
        if not any(_swept(company, nodes, me, holder) for me in nodes):
            break
    else:
        pytest.fail("it never came to rest")

    placeable = {seat.handle for seat in company if any(node.counts and seat.placement.fits(node) for node in nodes)}
    assert {*holder} == placeable


def _swept(company: list[PlacedSeat], nodes: list[FleetNode], me: FleetNode, holder: dict[str, str]) -> bool:
    """One pass of a node against the leases in ``holder``; whether anything moved."""
    held = [handle for handle, node in holder.items() if node == me.node_id]
    plan = plan_pass(PlacedCompany.of(company, me.node_id), nodes, me, held=held, stuck=(), hints={})
    for handle in (*plan.releases, *plan.misplaced, *plan.gone):
        del holder[handle]
    claimed = 0
    for space, handles in plan.claims:
        free = [handle for handle in handles if handle not in holder][: min(space, 4 - claimed)]
        holder.update(dict.fromkeys(free, me.node_id))
        claimed += len(free)
    return bool(claimed or plan.releases or plan.misplaced or plan.gone)
