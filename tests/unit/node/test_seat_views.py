"""The list of seats as an operator sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.backends.memory import MemoryLeases
from crewlet.config import models_without_keys
from crewlet.coordination import Lease
from crewlet.events import Event
from crewlet.events.types import AgentTurnStarted
from crewlet.llm import build_models
from crewlet.node import SeatView
from crewlet.node.company_parts import provider_configs
from crewlet.node.seat_activity import SeatActivities
from crewlet.node.seat_views import seat_views
from crewlet.node.turn_runner import CompanyEpoch
from crewlet.seats import Host, HostConfig, PlacedSeat, ReleaseMode
from crewlet.testing import SeededIds, VirtualClock
from crewlet.turns import TurnEngine
from tests.unit.node.chains import Chain
from tests.unit.node.companies import acme, source

pytestmark = pytest.mark.virtual_time

LLM = {
    "claude": {"type": "anthropic", "model": "some-model", "api_keys": ["${CLAUDE_KEY}"], "optional": True},
    "offline": {"type": "scripted", "script": "script.yaml"},
}
ROLES = [
    {"name": "Chief", "handle": "ceo", "llm": ["claude", "offline"]},
    {"name": "Ann", "handle": "ann", "kind": "human", "contact": {"slack_user_id": "U1"}},
]


class Hooks:
    """Establishes seats without a step."""

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        pass

    def on_established(self, handle: str) -> None:
        pass

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        pass

    async def on_unproven(self, handle: str) -> None:
        pass

    async def on_proven(self, handle: str) -> None:
        pass


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    clock = VirtualClock()
    host = Host(
        leases=MemoryLeases(clock), hooks=Hooks(), clock=clock, config=HostConfig(owner="n:1", node_id="n", alone=True)
    )
    await host.start([PlacedSeat("ceo")])
    yield host
    await host.release_all()


async def publish(topic: str, event: Event) -> Event:
    return event


def seen(host: Host, folder: Path, activities: SeatActivities, **environment: str) -> dict[str, SeatView]:
    (folder / "script.yaml").write_text("replies: [{say: hi}]")
    company = source(acme(roles=ROLES, providers={"llm": LLM}), environment, folder)
    clock = VirtualClock()
    skipped = models_without_keys(company.organization, company.resolve)
    models = build_models(provider_configs(company, skipped), resolve=company.resolve, clock=clock)
    epoch = CompanyEpoch(company.organization, models, skipped, TurnEngine(publish, clock, SeededIds()))
    return {view.handle: view for view in seat_views(epoch, host, activities)}


async def test_every_seat_is_listed_in_the_documents_order_people_included(host: Host, tmp_path: Path) -> None:
    assert list(seen(host, tmp_path, SeatActivities())) == ["ceo", "ann", "cto", "eng"]


async def test_a_seat_that_is_held_here_says_so_with_its_epoch(host: Host, tmp_path: Path) -> None:
    views = seen(host, tmp_path, SeatActivities())

    assert (views["ceo"].held_here, views["ceo"].epoch) == (True, host.epoch_of("ceo"))
    assert (views["cto"].held_here, views["cto"].epoch) == (False, None)


async def test_what_a_seat_does_is_told_and_people_do_nothing_here(host: Host, tmp_path: Path) -> None:
    activities, chain = SeatActivities(), Chain()
    chain.tells(AgentTurnStarted(turn_id="t1", agent_handle="ceo"))
    await activities.listen("crewlet.events.agent_turn_started", chain.events[-1])

    views = seen(host, tmp_path, activities)

    assert (views["ceo"].activity, views["ceo"].turn_id, views["cto"].activity) == ("working", "t1", "idle")
    assert (views["ann"].activity, views["ann"].kind, views["ann"].agent_id, views["ann"].models) == (
        None,
        "human",
        "",
        (),
    )


async def test_a_seats_unit_and_manager_are_told(host: Host, tmp_path: Path) -> None:
    views = seen(host, tmp_path, SeatActivities())

    assert (views["eng"].unit, views["eng"].manager) == ("engineering", "cto")


async def test_a_seat_that_a_script_answers_says_so(host: Host, tmp_path: Path) -> None:
    with_key = seen(host, tmp_path, SeatActivities(), CLAUDE_KEY="k")["ceo"]
    without = seen(host, tmp_path, SeatActivities())["ceo"]

    assert (with_key.models_are_real, "claude" in with_key.models) == (True, True)
    assert (without.models, without.models_are_real) == (("offline",), False)
