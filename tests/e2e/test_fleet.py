"""Two nodes of one company on one broker: seats are divided, move when a node dies or ends, and any node answers."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from crewlet.base import limits
from crewlet.base.clock import SystemClock
from crewlet.seats import EXIT_WEDGED
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.broker.test_external_broker import TOKEN, external_broker
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

Json = dict[str, Any]
TTL_S = 6
SEATS = ("ceo", "cto", "dev", "ops")


DIES_OF_WHAT_IT_ROUTES = """
import os, signal, sys
from crewlet.cli import main
from crewlet.notify.service import NotificationService

async def handle(self, delivery):
    os.kill(os.getpid(), signal.SIGKILL)

NotificationService.handle = handle
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    async with external_broker(folder) as url:
        yield url


async def node_files(folder: Path, url: str, name: str, *, delay_ms: int = 0) -> EngineFiles:
    write_script(folder, ECHO, delay_ms=delay_ms)
    node = {
        "node": {"id": name},
        "stream": {"type": "nats", "url": url, "token": TOKEN},
        "coordination": {"type": "embedded-kv", "lease_ttl_seconds": TTL_S},
    }
    return await write_engine_files(folder, company(*map(role, SEATS), llm={"script": scripted()}), node=node)


async def holders(engine: Engine) -> Mapping[str, str | None]:
    return {seat["handle"]: seat["node"] for seat in (await engine.api.get("/query/fleet"))["seats"]}


async def divided(engine: Engine, *nodes: str) -> None:
    """Return once each of these nodes, and nobody else, has its share of the seats."""

    async def is_divided() -> bool:
        held = [*(await holders(engine)).values()]
        return sorted(map(str, held)) == sorted(nodes * (len(SEATS) // len(nodes)))

    await wait_until(is_divided, what=f"seats on {nodes}", timeout_s=60)


async def attached(engine: Engine) -> set[str]:
    """The seats whose inboxes this node works."""
    mailboxes = (await engine.api.get("/mailboxes"))["mailboxes"]
    return {each["seat"] for each in mailboxes if each["attached"] == "here" and each["topic"].endswith(".inbox")}


@pytest.mark.spec("C-206", "S-211")
async def test_seats_are_divided_and_any_node_answers(broker: str, tmp_path: Path) -> None:
    async with (
        running_engine(await node_files(tmp_path / "a", broker, "a")) as first,
        running_engine(await node_files(tmp_path / "b", broker, "b")) as second,
    ):
        await divided(first, "a", "b")

        sent = [(via, await via.api.send(seat, f"Hi {seat}")) for seat in SEATS for via in (first, second)]
        answers = [await via.api.final_message(message) for via, message in sent]
        elsewhere = await second.api.message(sent[0][1])
        held = [set((await each.api.get("/health"))["seats"]) for each in (first, second)]
        leased = [{seat for seat, node in (await holders(first)).items() if node == name} for name in ("a", "b")]

        assert [answer["answer"] for answer in answers] == [f"You said: Hi {seat}" for seat in SEATS for _ in range(2)]
        assert elsewhere["state"] == "answered"
        assert held == leased == [await attached(first), await attached(second)]


async def test_a_node_that_is_killed_loses_its_seats_to_the_other_within_a_lease(broker: str, tmp_path: Path) -> None:
    async with (
        running_engine(await node_files(tmp_path / "a", broker, "a")) as first,
        running_engine(await node_files(tmp_path / "b", broker, "b")) as second,
    ):
        await divided(first, "a", "b")
        await first.kill()
        sent = [await second.api.send(seat, f"Hi {seat}") for seat in SEATS]

        answers = [await second.api.final_message(message, timeout_s=60) for message in sent]
        await divided(second, "b")

        assert [answer["answer"] for answer in answers] == [f"You said: Hi {seat}" for seat in SEATS]


@pytest.mark.spec("C-093")
async def test_a_node_that_ends_hands_its_seats_over_without_a_lapse(broker: str, tmp_path: Path) -> None:
    async with (
        running_engine(await node_files(tmp_path / "a", broker, "a")) as first,
        running_engine(await node_files(tmp_path / "b", broker, "b")) as second,
    ):
        await divided(first, "a", "b")

        await first.drained()
        await divided(second, "b")

        epochs = await second.api.get("/coordination/epochs", **{"class": "seat"})
        assert all(record["value"]["released"] == record["value"]["epoch"] - 1 for record in epochs["records"])


@pytest.mark.alone
async def test_what_a_node_was_routing_when_it_was_killed_is_routed_by_a_live_peer_within_a_lease(
    broker: str, tmp_path: Path
) -> None:
    """No node starts meanwhile: nothing but the clock of the work queue gives it back."""
    dies = (sys.executable, "-c", DIES_OF_WHAT_IT_ROUTES, "run")
    async with (
        running_engine(await node_files(tmp_path / "b", broker, "b")) as second,
        running_engine(await node_files(tmp_path / "a", broker, "a"), command=dies) as first,
    ):
        sent: list[str] = []

        async def died() -> bool:
            sent.append(await second.api.send("ceo", f"Hi {len(sent)}"))
            return first.exit_code is not None

        await wait_until(died, what="the first node's end", timeout_s=20)
        clock = SystemClock()
        died_at_s = clock.elapsed_s()
        answers = [await second.api.final_message(message, timeout_s=60) for message in sent]
        took_s = clock.elapsed_s() - died_at_s

        assert [answer["answer"] for answer in answers] == [f"You said: Hi {number}" for number in range(len(sent))]
        # The seat itself may have been the dead node's: a lease, a sweep, a second for the turns.
        assert took_s < TTL_S + limits.SEAT_SWEEP_EVERY_S + 1.0


async def test_a_node_that_was_stopped_past_its_leases_acts_on_nothing_any_more(broker: str, tmp_path: Path) -> None:
    """What it was doing is done by its successor, once. It ends as a wedged node does; started again it takes part."""
    files = [await node_files(tmp_path / name, broker, name, delay_ms=3000) for name in ("a", "b")]
    async with running_engine(files[0]) as first, running_engine(files[1]) as second:
        await divided(first, "a", "b")
        seat = next(handle for handle, node in (await holders(second)).items() if node == "a")
        message = await second.api.send(seat, "Hi")
        await wait_until(lambda: begun(first, message), what="the turn", timeout_s=20)

        clock = SystemClock()
        first.signal(signal.SIGSTOP)
        stopped_at_s = clock.elapsed_s()
        await divided(second, "b")
        answer = await second.api.final_message(message, timeout_s=60)
        # Past the watchdog's backstop, which stands behind the lease.
        await wait_until(lambda: clock.elapsed_s() > stopped_at_s + 2 * TTL_S, what="the stop's length", timeout_s=30)
        first.signal(signal.SIGCONT)
        code = await first.ended()
        stood = await second.api.message(message)

        assert code in {1, EXIT_WEDGED}
        assert answer["answer"] == "You said: Hi"
        assert [turn["state"] for turn in stood["turns"]].count("done") == 1
        async with running_engine(files[0]):
            await divided(second, "a", "b")


async def begun(engine: Engine, message_id: str) -> bool:
    return any(turn["state"] == "running" for turn in (await engine.api.message(message_id))["turns"])
