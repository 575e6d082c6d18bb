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
from tests.e2e.companies import ASK_CTO, ASKED, ECHO, company, role, scripted, write_script
from tests.e2e.effects import effects_of, effects_server

KILLED_ENGINE = Path(__file__).with_name("killed_engine.py")
RUNNING_AGAIN_S = 20.0
"""Seconds from the restart to the turn on a busy machine; by the ack clock alone it would be half an hour."""
PARTS = 3
"""Each sweep is in parts that may run side by side: of the steps, one kills before each third."""
CHILDREN_GONE_S = 2.0
EVERY_STEP = bool(os.environ.get("CREWLET_EVERY_STEP"))
"""Whether somebody asks for all of them."""
STEP = 1 if EVERY_STEP else 2
LONG_STEP = 1 if EVERY_STEP else 7
"""Every how-manieth step of the short way, and of the long one, kills."""
LEDGER_WRITE = topics.bucket_subject(topics.bucket("ledger"), "")
KILL_9 = -9
EVENTS_MAX = 400
NEWEST = 10

ASK_AND_ACT = [
    *ASK_CTO[:2],
    {
        "when": {"seat": "cto", "phase": "execute", "after": "none"},
        "call": [{"tool": "activate_tool", "with": {"name": "record"}}],
    },
    {
        "when": {"seat": "cto", "phase": "execute", "after": "activate_tool", "text": ASKED},
        "call": [{"tool": "record", "with": {"text": "{question}"}}],
    },
    ASK_CTO[-1],
]
"""As :data:`ASK_CTO`, but what the CTO does is counted where no engine can undo it."""

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

    def opened(self, handle: str) -> int:
        """How many turns of a seat had an opening in its journal for certain."""
        count, is_open = 0, False
        for line in self.log:
            if line == f"= request {topics.journal(handle)}":
                count, is_open = count + (not is_open), True
            elif line.startswith(f"= request {LEDGER_WRITE}{handle}."):
                is_open = False
        return count

    @property
    def acted(self) -> bool:
        """Whether its call outside had come back for certain."""
        return "= call the tool record" in self.log

    @property
    def may_have_been_about_to_act(self) -> bool:
        return any(line.endswith(f" publish {topics.journal('cto')}") for line in self.log)


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


@dataclass(frozen=True, slots=True)
class Told:
    """What the event log tells of turns: how often each completed, and of each start whether it was resumed."""

    completed: Counter[str]
    started: dict[str, list[bool]]

    @classmethod
    async def by(cls, engine: Engine) -> Told:
        completed = await engine.api.events("agent_turn_completed", limit=EVENTS_MAX)
        started: dict[str, list[bool]] = {}
        for each in reversed(await engine.api.events("agent_turn_started", limit=EVENTS_MAX)):
            started.setdefault(each["turn_id"], []).append(bool(each.get("resumed")))
        return cls(Counter(each["turn_id"] for each in completed), started)


class Sweep:
    """One company's engine, killed again and again on one data directory, and what was seen of it.

    ``effects``: where the calls outside that a message is to bring about are written down, if it is to bring one.
    """

    def __init__(self, files: EngineFiles, seat: str, answer: str, *, effects: Path | None = None) -> None:
        self._files = files
        self._seat = seat
        self._answer = answer
        self._effects = effects
        self.lives: list[Life] = []
        self.resumed: set[str] = set()
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
            told = await Told.by(engine)
            wrong: list[str] = []
            for life in self.lives:
                wrong += [f"{life.nth} ({life.begun}): {what}" for what in await self._wrong_with(life, engine, told)]
            assert await engine.drained() == 0
            await engine.gone()
        return wrong

    def report(self, name: str) -> None:
        slowest = max(self.turn_started_s, default=0.0)
        again = sorted(self.turn_started_s)
        middle = again[len(again) // 2] if again else 0.0
        print(f"{name}: {len(self.lives)} lives, the turn ran again {middle:.2f} s (median), {slowest:.2f} s (most)")
        print(f"{name}: {len(self.resumed)} turns were gone on with")

    async def _recovered(self, engine: Engine) -> None:
        if not self.lives:
            return
        last = self.lives[-1]
        if last.message_id is not None:
            message = await engine.api.final_message(last.message_id)
            await self._time(engine, {turn["turn_id"] for turn in message["turns"]})
        elif last.was_accepted:
            await wait_until(lambda: self._has_ended(engine, last.text), what=f"the turn of {last.text!r}")

    async def _time(self, engine: Engine, turns: set[str]) -> None:
        starts = await engine.api.events("agent_turn_started", limit=NEWEST)
        at = [datetime.fromisoformat(start["timestamp"]) for start in starts if start["turn_id"] in turns]
        again = [each for each in at if each > engine.spawned_at]
        if again:
            self.turn_started_s.append((min(again) - engine.spawned_at).total_seconds())

    async def _has_ended(self, engine: Engine, text: str) -> bool:
        return bool(await self._done(engine, text))

    async def _done(self, engine: Engine, text: str) -> list[dict[str, Any]]:
        completed = await engine.api.events("agent_turn_completed", limit=EVENTS_MAX)
        return [turn for turn in completed if turn.get("artifact") == self._answer.format(text)]

    async def _wrong_with(self, life: Life, engine: Engine, told: Told) -> list[str]:
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
        wrong += self._wrong_with_turns(life, message["turns"], told)
        return wrong + self._wrong_with_effects(life)

    def _wrong_with_turns(self, life: Life, turns: list[dict[str, Any]], told: Told) -> list[str]:
        """A trigger has one turn, but for the one whose opening was not on record yet; a turn has one completion."""
        wrong: list[str] = []
        unopened = 0
        for handle in dict.fromkeys(turn["handle"] for turn in turns):
            of_seat = [turn for turn in turns if turn["handle"] == handle]
            for place, trigger in enumerate(dict.fromkeys(turn["trigger_id"] for turn in of_seat)):
                runs = [turn for turn in of_seat if turn["trigger_id"] == trigger]
                unopened += len(runs) > 1
                if len(runs) > 1 and place < life.opened(handle):
                    wrong.append(f"{handle} had opened its turn, and began another: {runs}")
                if [turn["state"] for turn in runs].count("done") != 1:
                    wrong.append(f"{handle} had one trigger done {[turn['state'] for turn in runs]}")
        if unopened > 1:
            wrong.append(f"{unopened} triggers were begun again")
        for turn_id in (turn["turn_id"] for turn in turns):
            if told.completed[turn_id] > 1:
                wrong.append(f"turn {turn_id} completed {told.completed[turn_id]} times")
            first, *later = told.started[turn_id]
            if first or not all(later):
                wrong.append(f"turn {turn_id} started as {told.started[turn_id]}")
            self.resumed |= {turn_id} if later else set()
        return wrong

    def _wrong_with_effects(self, life: Life) -> list[str]:
        if self._effects is None:
            return []
        made = effects_of(self._effects, life.text)
        # One that was about to be made when the process died is not made again: the model is told so.
        least = 1 if life.acted or not life.may_have_been_about_to_act else 0
        return [] if least <= made <= 1 else [f"its call outside was made {made} times, and not {least} to 1"]


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_turn_killed_before_any_of_its_steps_is_answered_once_after_the_restart(
    tmp_path: Path, part: int
) -> None:
    write_script(tmp_path, ECHO)
    files = await write_engine_files(tmp_path, company(role("ceo"), llm={"script": scripted()}))
    sweep = Sweep(files, "ceo", "You said: {}")

    await sweep.run(range(1 + part * STEP, 400, PARTS * STEP))

    assert await sweep.settled() == []
    sweep.report("one seat")
    assert len(sweep.lives) > 40 / STEP / PARTS
    assert not sweep.lives[-1].was_killed
    assert sweep.resumed
    assert max(sweep.turn_started_s) < RUNNING_AGAIN_S


@pytest.mark.parametrize("part", range(PARTS))
async def test_an_ask_between_agents_survives_a_kill_before_its_steps_and_ends_closed(
    tmp_path: Path, part: int
) -> None:
    write_script(tmp_path, *ASK_AND_ACT)
    people, effects = [role("ceo"), role("cto")], tmp_path / "effects"
    document = company(*people, llm={"script": scripted()}, mcp_servers=[effects_server(effects)])
    files = await write_engine_files(tmp_path, document)
    sweep = Sweep(files, "ceo", "The CTO says: I heard: {}", effects=effects)

    await sweep.run(range(1 + part * LONG_STEP, 600, PARTS * LONG_STEP))

    assert await sweep.settled() == []
    sweep.report("a CEO that asks its CTO, who acts")
    assert len(sweep.lives) > 150 / LONG_STEP / PARTS
    assert not sweep.lives[-1].was_killed
    assert sweep.resumed
    assert max(sweep.turn_started_s) < RUNNING_AGAIN_S
