"""A node is lost in the middle of a turn that has acted already: its peer goes on with that turn, and acts once."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from crewlet.turns.calling import MAY_HAVE_HAPPENED
from tests.broker.test_external_broker import TOKEN, external_broker
from tests.e2e.companies import company, role, scripted
from tests.e2e.effects import effects_of, effects_server, write_worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

Json = dict[str, Any]
TTL_S = 6
SEATS = ("ceo", "cto")
THINKS_MS = 4000
"""What a model call of the first node takes: long enough to be found in the middle of one."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two nodes, each with a seat. The first thinks slowly; ``seat`` is the one that it holds."""

    first: Engine
    second: Engine
    seat: str
    effects: Path

    async def acting(self, text: str) -> str:
        """Have the first node's seat act once; the message's id, when the world has changed."""
        message = await self.second.api.send(self.seat, text)
        await wait_until(lambda: effects_of(self.effects, text) > 0, what="the call outside", timeout_s=30)
        return message

    def told(self, event_type: str) -> list[Json]:
        """All events of a type in the logs of both nodes, whichever of them still runs; oldest first."""
        return sorted(
            (each for node in "ab" for each in _stored(self.effects.parent / node, event_type)),
            key=lambda each: str(each["timestamp"]),
        )

    def starts(self, turn_id: str) -> list[tuple[str, bool]]:
        """By which node the turn was begun or gone on with, oldest first; whether it was resumed."""
        started = self.told("agent_turn_started")
        return [(each["node"], bool(each.get("resumed"))) for each in started if each["turn_id"] == turn_id]


def _stored(folder: Path, event_type: str) -> list[Json]:
    with closing(sqlite3.connect(f"file:{folder / '.crewlet' / 'crewlet.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT payload FROM crewlet_events WHERE event_type = ?", (event_type,))
        return [json.loads(payload) for (payload,) in rows]


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    async with external_broker(folder) as url:
        yield url


async def node_files(folder: Path, url: str, *, thinks_ms: int, mute: str) -> EngineFiles:
    write_worker(folder, delay_ms=thinks_ms)
    node = {
        "node": {"id": folder.name},
        "stream": {"type": "nats", "url": url, "token": TOKEN},
        "coordination": {"type": "embedded-kv", "lease_ttl_seconds": TTL_S},
    }
    server = effects_server(folder.parent / "effects", mute=mute)
    document = company(*map(role, SEATS), llm={"script": scripted()}, mcp_servers=[server])
    return await write_engine_files(folder, document, node=node)


@asynccontextmanager
async def running_pair(folder: Path, url: str, *, thinks_ms: int = THINKS_MS, mute: str = "") -> AsyncGenerator[Pair]:
    async with (
        running_engine(await node_files(folder / "a", url, thinks_ms=thinks_ms, mute=mute)) as first,
        running_engine(await node_files(folder / "b", url, thinks_ms=0, mute=mute)) as second,
    ):
        held: dict[str, str] = {}

        async def is_divided() -> bool:
            held.update({seat["node"]: seat["handle"] for seat in (await second.api.get("/query/fleet"))["seats"]})
            return held.keys() >= {"a", "b"}

        await wait_until(is_divided, what="a seat each", timeout_s=60)
        yield Pair(first, second, held["a"], folder / "effects")


@pytest.mark.spec("E-129")
async def test_killed_in_a_model_call_after_it_acted_a_turn_is_ended_by_the_peer(broker: str, tmp_path: Path) -> None:
    async with running_pair(tmp_path, broker) as pair:
        message = await pair.acting("write it down")
        await pair.first.kill()

        answered = await pair.second.api.final_message(message, timeout_s=60)

        (turn,) = answered["turns"]
        assert (answered["answer"], turn["state"]) == ("Done: write it down", "done")
        assert pair.starts(turn["turn_id"]) == [("a", False), ("b", True)]
        assert effects_of(pair.effects, "write it down") == 1


async def test_killed_in_a_tool_call_a_turn_is_told_by_the_peer_that_the_call_may_have_happened(
    broker: str, tmp_path: Path
) -> None:
    async with running_pair(tmp_path, broker, thinks_ms=0, mute="a") as pair:
        message = await pair.acting("write it down")
        await pair.first.kill()

        answered = await pair.second.api.final_message(message, timeout_s=60)
        phases = await pair.second.api.events("agent_phase_completed")

        (turn,) = answered["turns"]
        calls = [call for phase in phases if phase["turn_id"] == turn["turn_id"] for call in phase["tool_executions"]]
        assert (answered["answer"], turn["state"]) == ("Done: write it down", "done")
        assert MAY_HAVE_HAPPENED in {call.get("error") for call in calls}
        assert effects_of(pair.effects, "write it down") == 1


async def test_a_node_that_was_stopped_past_its_lease_in_mid_turn_adds_nothing_to_it_when_it_wakes(
    broker: str, tmp_path: Path
) -> None:
    async with running_pair(tmp_path, broker) as pair:
        message = await pair.acting("write it down")
        pair.first.signal(signal.SIGSTOP)
        answered = await pair.second.api.final_message(message, timeout_s=60)
        pair.first.signal(signal.SIGCONT)

        async def is_over() -> bool:
            # It ends as a wedged node does, or finds that the turn is not its own any more and takes part again.
            return pair.first.exit_code is not None or await pair.first.api.is_ready()

        await wait_until(is_over, what="what becomes of the first node", timeout_s=30)
        later = await pair.second.api.send(pair.seat, "and this")
        await pair.second.api.final_message(later, timeout_s=60)
        stood = await pair.second.api.message(message)

        (turn,) = stood["turns"]
        completed = pair.told("agent_turn_completed")
        assert (stood["answer"], turn["state"]) == (answered["answer"], "done")
        assert [each["node"] for each in completed if each["turn_id"] == turn["turn_id"] and each.get("decision")] == [
            "b"
        ]
        assert pair.starts(turn["turn_id"]) == [("a", False), ("b", True)]
        assert [effects_of(pair.effects, text) for text in ("write it down", "and this")] == [1, 1]


async def test_a_node_that_is_asked_to_end_ends_its_turn_itself(broker: str, tmp_path: Path) -> None:
    async with running_pair(tmp_path, broker) as pair:
        await pair.acting("write it down")

        code = await pair.first.drained(timeout_s=60)

        (completed,) = pair.told("agent_turn_completed")
        assert code == 0
        assert (completed["node"], completed["artifact"]) == ("a", "Done: write it down")
        assert pair.starts(completed["turn_id"]) == [("a", False)]
        assert effects_of(pair.effects, "write it down") == 1


async def test_a_message_that_was_worked_on_a_node_that_left_is_not_said_to_be_untouched(
    broker: str, tmp_path: Path
) -> None:
    async with running_pair(tmp_path, broker) as pair:
        message = await pair.acting("write it down")
        await pair.first.drained(timeout_s=60)

        stood = await pair.second.api.message(message)

        assert (stood["state"], stood["turns"], stood["reason"]) == (
            "waiting",
            [],
            "it was worked, and no live node's log says how; the answer is known once the node that did is back",
        )
