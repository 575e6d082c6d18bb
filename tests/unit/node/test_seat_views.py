"""The list of seats as an operator sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crewlet.backends.memory import MemoryLeases
from crewlet.base.errors import Unavailable
from crewlet.config import models_without_keys
from crewlet.coordination import Lease, SeatPause
from crewlet.events import Event
from crewlet.events.types import AgentTurnStarted
from crewlet.llm import build_models
from crewlet.node import SeatView
from crewlet.node.company_parts import provider_configs
from crewlet.node.pause_views import PauseView
from crewlet.node.seat_activity import SeatActivities
from crewlet.node.seat_views import seat_views
from crewlet.node.turn_runner import CompanyEpoch
from crewlet.seats import Host, HostConfig, PlacedSeat, ReleaseMode
from crewlet.testing import SeededIds, VirtualClock
from crewlet.turns import TurnEngine
from tests.unit.node.chains import Chain
from tests.unit.node.companies import acme, source

pytestmark = pytest.mark.virtual_time

PAUSED_AT = datetime(2030, 1, 1, tzinfo=UTC)
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


@dataclass
class Pauses:
    """Seats that are paused; ``None`` where nobody knows."""

    standing: dict[str, SeatPause] | None = field(default_factory=dict[str, SeatPause])

    def paused(self, handle: str) -> SeatPause | None:
        if self.standing is None:
            raise Unavailable("not known yet")
        return self.standing.get(handle)


def seen(
    host: Host,
    folder: Path,
    activities: SeatActivities,
    *,
    pauses: Pauses | None = None,
    refuses: Callable[[str], bool] = lambda _: False,
    **environment: str,
) -> dict[str, SeatView]:
    (folder / "script.yaml").write_text("replies: [{say: hi}]")
    company = source(acme(roles=ROLES, providers={"llm": LLM}), environment, folder)
    clock = VirtualClock()
    skipped = models_without_keys(company.organization, company.resolve)
    models = build_models(provider_configs(company, skipped), resolve=company.resolve, clock=clock)
    epoch = CompanyEpoch(company.organization, models, skipped, TurnEngine(publish, clock, SeededIds()))
    return {view.handle: view for view in seat_views(epoch, host, activities, pauses or Pauses(), refuses)}


async def test_every_seat_is_listed_in_the_documents_order_people_included(host: Host, tmp_path: Path) -> None:
    assert list(seen(host, tmp_path, SeatActivities())) == ["ceo", "ann", "cto", "eng"]


async def test_a_seat_that_is_held_here_says_so_with_its_epoch(host: Host, tmp_path: Path) -> None:
    views = seen(host, tmp_path, SeatActivities())

    assert (views["ceo"].held_here, views["ceo"].epoch) == (True, host.epoch_of("ceo"))
    assert (views["cto"].held_here, views["cto"].epoch) == (False, None)


async def test_a_seat_whose_window_has_no_room_is_stopped_by_its_budget_as_long_as_that_says_so(
    host: Host, tmp_path: Path
) -> None:
    full = {seen(host, tmp_path, SeatActivities())["ceo"].agent_id}

    views = seen(host, tmp_path, SeatActivities(), refuses=full.__contains__)

    assert (views["ceo"].activity, views["ceo"].stopped_reason) == ("stopped", "budget")
    assert (views["cto"].activity, views["cto"].stopped_reason) == ("idle", None)


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


async def test_a_paused_seat_says_by_whom_and_why_and_works_on_until_its_turn_ends(host: Host, tmp_path: Path) -> None:
    pause = SeatPause(handle="ceo", by="operator:ada", at=PAUSED_AT, reason="audit", stop_running=True)
    pauses, activities, chain = Pauses({"ceo": pause}), SeatActivities(), Chain()

    view = seen(host, tmp_path, activities, pauses=pauses)["ceo"]
    chain.tells(AgentTurnStarted(turn_id="t1", agent_handle="ceo"))
    await activities.listen("crewlet.events.agent_turn_started", chain.events[-1])
    working = seen(host, tmp_path, activities, pauses=pauses)["ceo"]

    assert (view.activity, view.stopped_reason) == ("stopped", "paused")
    assert view.paused == PauseView(by="operator:ada", by_seat="", at=PAUSED_AT, reason="audit", stop_running=True)
    assert (working.activity, working.stopped_reason, working.paused) == ("working", None, view.paused)


async def test_a_seat_of_which_nobody_knows_whether_it_is_paused_does_not_read_as_idle(
    host: Host, tmp_path: Path
) -> None:
    views = seen(host, tmp_path, SeatActivities(), pauses=Pauses(None))

    assert (views["ceo"].activity, views["ceo"].stopped_reason) == ("stopped", "pauses_unknown")
    assert (views["ann"].activity, views["ann"].stopped_reason) == (None, None)


async def test_a_seats_unit_and_manager_are_told(host: Host, tmp_path: Path) -> None:
    views = seen(host, tmp_path, SeatActivities())

    assert (views["eng"].unit, views["eng"].manager) == ("engineering", "cto")


async def test_a_seat_that_a_script_answers_says_so(host: Host, tmp_path: Path) -> None:
    with_key = seen(host, tmp_path, SeatActivities(), CLAUDE_KEY="k")["ceo"]
    without = seen(host, tmp_path, SeatActivities())["ceo"]

    assert (with_key.models_are_real, "claude" in with_key.models) == (True, True)
    assert (without.models, without.models_are_real) == (("offline",), False)
