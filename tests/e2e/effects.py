"""A company whose every message has one effect in the world, a load of such messages, and what they came to."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from crewlet.testing.engines import Engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import company, role, scripted, write_script

Json = dict[str, Any]
SERVER = Path(__file__).with_name("effects_server.py")
_QUESTION = r"writes to you:\n> (?P<question>[^\n]+)"

WORKER: tuple[Json, ...] = (
    {
        "when": {"phase": "execute", "after": "none"},
        "call": [{"tool": "activate_tool", "with": {"name": "record"}}],
    },
    {
        "when": {"phase": "execute", "after": "activate_tool", "text": _QUESTION},
        "call": [{"tool": "record", "with": {"text": "{question}"}}],
    },
    {"when": {"phase": "execute", "text": _QUESTION}, "say": "Done: {question}"},
)
"""A seat that does what it is told, once, and says so."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One call of the tool: which message's, by which node, when on the clock that counts sleep."""

    text: str
    node: str
    at_s: float


def working_company(handles: Sequence[str], effects: Path) -> Json:
    """Seats that work as :data:`WORKER` does; their effects are lines of ``effects``."""
    return company(*map(role, handles), llm={"script": scripted()}, mcp_servers=[effects_server(effects, shared=True)])


def effects_server(effects: Path, *, mute: str = "", **fields: object) -> Json:
    """A tool server whose calls are lines of ``effects``; on the node whose folder is ``mute`` it never answers."""
    return {"name": "effects", "command": sys.executable, "args": [str(SERVER), str(effects), mute], **fields}


def effects_of(effects: Path, text: str) -> int:
    """How often the tool did what a message was to bring about."""
    lines = effects.read_text().splitlines() if effects.exists() else []
    return [json.loads(line)["text"] for line in lines].count(text)


def write_worker(folder: Path, *, delay_ms: int = 0) -> None:
    """What the seats of :func:`working_company` answer from; ``delay_ms`` is what each model call takes."""
    write_script(folder, *WORKER, delay_ms=delay_ms)


@dataclass(slots=True)
class Load:
    """Messages to seats, one after another to each, and what became of them.

    ``engines``: who may be asked to take one, now. ``pause_s``: between the effect of one and the next to that seat.
    Each attempt to send has words of its own: one whose answer was lost may have arrived or not, and may have one
    effect or none; one that was taken must have one.
    """

    file: Path
    engines: Callable[[], Sequence[Engine]]
    pause_s: float = 0.0
    taken: list[str] = field(default_factory=list[str])
    unsure: list[str] = field(default_factory=list[str])
    _read_bytes: int = 0
    _effects: list[Effect] = field(default_factory=list[Effect])
    _worked: set[str] = field(default_factory=set[str])

    def effects(self) -> list[Effect]:
        """Every effect so far."""
        if self.file.exists():
            with self.file.open("rb") as lines:
                lines.seek(self._read_bytes)
                new = lines.read()
            # A line that is being written is read the next time.
            whole = new[: new.rfind(b"\n") + 1]
            self._read_bytes += len(whole)
            self._effects += [Effect(**json.loads(line)) for line in whole.splitlines()]
            self._worked = {effect.text for effect in self._effects} if whole else self._worked
        return self._effects

    async def worked(self, *, timeout_s: float) -> None:
        """Return once everything that was taken had its effect."""
        missing: set[str] = set()

        def holds() -> bool:
            self.effects()
            missing.clear()
            missing.update({*self.taken} - self._worked)
            return not missing

        try:
            await wait_until(holds, what="the effects of what was sent", timeout_s=timeout_s)
        except TimeoutError as late:
            message = f"{len(missing)} of {len(self.taken)} had no effect: {sorted(missing)[:5]}"
            raise TimeoutError(message) from late

    def repeated(self) -> dict[str, list[Effect]]:
        """The messages that had more than one effect, with all of these."""
        effects = self.effects()
        times = Counter(effect.text for effect in effects)
        return {text: [each for each in effects if each.text == text] for text, count in times.items() if count > 1}

    def unasked(self) -> set[str]:
        """Effects of what nobody ever sent."""
        self.effects()
        return self._worked - {*self.taken, *self.unsure}

    async def ask(self, engine: Engine, handle: str) -> str:
        """Write to one seat once; the words, which are taken."""
        text = f"{handle} alone"
        assert await self._sent(engine, handle, text), "it was not taken"
        return text

    async def keep_sending(self, handle: str) -> None:
        """Write to one seat again and again; the next once the last has had its effect."""
        number = 0
        while True:
            engines = self.engines()
            text = f"{handle} {number}"
            if await self._sent(engines[number % len(engines)], handle, text):
                await self._had_its_effect(text)
            number += 1

    async def _sent(self, engine: Engine, handle: str, text: str) -> bool:
        self.unsure.append(text)
        try:
            await engine.api.send(handle, text)
        except httpx.HTTPError:
            await asyncio.sleep(0.2)
            return False
        self.unsure.remove(text)
        self.taken.append(text)
        return True

    async def _had_its_effect(self, text: str) -> None:
        while text not in self._worked:
            await asyncio.sleep(0.2)
            self.effects()
        await asyncio.sleep(self.pause_s)


@asynccontextmanager
async def under_load(load: Load, handles: Sequence[str]) -> AsyncGenerator[None]:
    """Each of these seats is written to as long as this is open."""
    senders = [asyncio.create_task(load.keep_sending(handle)) for handle in handles]
    try:
        yield
        for sender in senders:
            if sender.done():
                sender.result()
    finally:
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
