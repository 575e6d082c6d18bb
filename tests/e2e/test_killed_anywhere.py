"""kill -9 between every two steps of a turn: nothing is lost, and what was completed is not done again."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from crewlet import topics
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ASK_CTO, ECHO, company, notes_server, role, scripted, write_script

KILLED_ENGINE = Path(__file__).with_name("killed_engine.py")
RUNNING_AGAIN_S = 20.0
"""Seconds from the restart to the turn on a busy machine; by the ack clock alone it would be half an hour."""
PARTS = 3
"""Each sweep is in parts that may run side by side: of the steps, one kills before each third."""
CHILDREN_GONE_S = 2.0
STEP = 1 if os.environ.get("CREWLET_EVERY_STEP") else 4
"""How many steps of the long way are passed over between two kills; all of them are taken where somebody asks."""
LEDGER_WRITE = topics.bucket_subject(topics.bucket("ledger"), "")
KILL_9 = -9

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@dataclass(frozen=True, slots=True)
class Life:
    """What one life of an engine came to: what it had done for certain, and what it died before."""

    nth: int
    text: str
    message_id: str | None
    log: tuple[str, ...]

    @property
    def was_killed(self) -> bool:
        return bool(self.log) and self.log[-1].startswith(f"{self.nth} ")

    @property
    def begun(self) -> str:
        return self.log[-1] if self.log else "nothing"

    @property
    def was_accepted(self) -> bool:
        return f"= request {topics.NOTIFICATIONS_INBOUND}" in self.log

    @property
    def may_be_accepted(self) -> bool:
        return any(line.endswith(f" publish {topics.NOTIFICATIONS_INBOUND}") for line in self.log[:-1])

    @property
    def ledgered(self) -> frozenset[str]:
        """The triggers whose completions were in the ledger for certain."""
        written = (line for line in self.log if line.startswith(f"= request {LEDGER_WRITE}"))
        return frozenset(line.rpartition(".")[2] for line in written)


@asynccontextmanager
async def engine_killed_at(nth: int, files: EngineFiles, log: Path, *, armed_by: str) -> AsyncGenerator[Engine]:
    command = (sys.executable, str(KILLED_ENGINE), str(log), armed_by, str(nth), "run")
    engine = Engine(files, command=command)
    try:
        yield await engine.start()
    finally:
        await engine.close()


def log_of(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text().splitlines()) if path.exists() else ()


async def accepted(engine: Engine, seat: str, text: str) -> str | None:
    """The message's id, or ``None`` where the engine died before it could say it."""
    try:
        return await engine.api.send(seat, text)
    except httpx.TransportError:
        return None


async def ended_or_answered(engine: Engine, message_id: str | None) -> None:
    async def holds() -> bool:
        if engine.exit_code is not None:
            return True
        try:
            return message_id is not None and (await engine.api.message(message_id))["state"] == "answered"
        except httpx.TransportError:
            return False

    await wait_until(holds, what="an answer or the end of the engine", timeout_s=30)


class Sweep:
    """One company's engine, killed again and again on one data directory, and what was seen of it."""

    def __init__(self, files: EngineFiles, seat: str, answer: str) -> None:
        self._files = files
        self._seat = seat
        self._answer = answer
        self.lives: list[Life] = []
        self.turn_started_s: list[float] = []

    async def run(self, kills: Iterable[int]) -> None:
        """Each life works what the one before left behind, then takes a message and dies of it."""
        for nth in kills:
            log = self._files.directory / f"steps-{nth}.log"
            async with engine_killed_at(nth, self._files, log, armed_by="message") as engine:
                await engine.ready()
                await self._recovered(engine)
                text = f"question {nth}"
                message_id = await accepted(engine, self._seat, text)
                await ended_or_answered(engine, message_id)
                life = Life(nth, text, message_id, log_of(log))
                self.lives.append(life)
                if not life.was_killed:
                    return
                assert await engine.ended(timeout_s=5) == KILL_9
                await engine.gone(within_s=CHILDREN_GONE_S)

    async def settled(self) -> list[str]:
        """What is wrong after one more life, an undisturbed one; empty where nothing is."""
        async with running_engine(self._files) as engine:
            await self._recovered(engine)
            wrong: list[str] = []
            for life in self.lives:
                wrong += [f"{life.nth} ({life.begun}): {what}" for what in await self._wrong_with(life, engine)]
            assert await engine.drained() == 0
            await engine.gone()
        return wrong

    def report(self, name: str) -> None:
        slowest = max(self.turn_started_s, default=0.0)
        again = sorted(self.turn_started_s)
        middle = again[len(again) // 2] if again else 0.0
        print(f"{name}: {len(self.lives)} lives, the turn ran again {middle:.2f} s (median), {slowest:.2f} s (most)")

    async def _recovered(self, engine: Engine) -> None:
        if not self.lives:
            return
        last = self.lives[-1]
        if last.message_id is not None:
            message = await engine.api.final_message(last.message_id)
            self._time(engine, message)
        elif last.was_accepted:
            await wait_until(lambda: self._has_ended(engine, last.text), what=f"the turn of {last.text!r}")

    def _time(self, engine: Engine, message: dict[str, Any]) -> None:
        starts = [datetime.fromisoformat(turn["started_at"]) for turn in message["turns"]]
        again = [start for start in starts if start > engine.spawned_at]
        if again:
            self.turn_started_s.append((min(again) - engine.spawned_at).total_seconds())

    async def _has_ended(self, engine: Engine, text: str) -> bool:
        return bool(await self._done(engine, text))

    async def _done(self, engine: Engine, text: str) -> list[dict[str, Any]]:
        completed = await engine.api.events("agent_turn_completed", limit=400)
        return [turn for turn in completed if turn.get("artifact") == self._answer.format(text)]

    async def _wrong_with(self, life: Life, engine: Engine) -> list[str]:
        wrong: list[str] = []
        done = await self._done(engine, life.text)
        if life.message_id is None:
            if life.was_accepted and not done:
                wrong.append("the broker had the message, and it was lost")
            if not life.may_be_accepted and done:
                wrong.append("it was never sent, and was answered")
            return wrong
        message = await engine.api.message(life.message_id)
        if (message["state"], message["answer"]) != ("answered", self._answer.format(life.text)):
            wrong.append(f"ended as {message['state']} with {message['answer']!r}: {message['reason']}")
        wrong += [f"its ask is {ask['status']}" for ask in message["asks"] if ask["status"] != "closed"]
        runs = Counter(turn["trigger_id"] for turn in message["turns"] if turn["state"] == "done")
        repeated = {trigger for trigger, times in runs.items() if times > 1}
        if len(repeated) > 1 or max(runs.values(), default=0) > 2:
            wrong.append(f"its turns were done {sorted(runs.values())} times")
        if repeated & life.ledgered:
            wrong.append("a turn that was in the ledger was done again")
        return wrong


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_turn_killed_before_any_of_its_steps_is_answered_once_after_the_restart(
    tmp_path: Path, part: int
) -> None:
    write_script(tmp_path, ECHO)
    files = await write_engine_files(tmp_path, company(role("ceo"), llm={"script": scripted()}))
    sweep = Sweep(files, "ceo", "You said: {}")

    await sweep.run(range(1 + part, 400, PARTS))

    assert await sweep.settled() == []
    sweep.report("one seat")
    assert len(sweep.lives) > 20 // PARTS
    assert not sweep.lives[-1].was_killed
    assert max(sweep.turn_started_s) < RUNNING_AGAIN_S


@pytest.mark.parametrize("part", range(PARTS))
async def test_an_ask_between_agents_survives_a_kill_before_its_steps_and_ends_closed(
    tmp_path: Path, part: int
) -> None:
    write_script(tmp_path, *ASK_CTO)
    people = [role("ceo"), role("cto")]
    document = company(*people, llm={"script": scripted()}, mcp_servers=[notes_server()])
    files = await write_engine_files(tmp_path, document)
    sweep = Sweep(files, "ceo", "The CTO says: I heard: {}")

    await sweep.run(range(1 + part * STEP, 600, PARTS * STEP))

    assert await sweep.settled() == []
    sweep.report("a CEO that asks its CTO")
    assert len(sweep.lives) > 80 / STEP / PARTS
    assert not sweep.lives[-1].was_killed
    assert max(sweep.turn_started_s) < RUNNING_AGAIN_S
