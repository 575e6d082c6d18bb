"""Writers that never rest, and a judge of what listings answered meanwhile.

The writers share a loop with the listers, so what is surely so at a moment is known: a key whose last write was
acknowledged is live until its removal is sent. The judge counts what no answer may show.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from crewlet.backends.nats import JetStream
from crewlet.backends.nats.jetstream_types import ApiError
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks

__all__ = ["Churn", "Verdict"]

_REMOVAL = {"KV-Operation": "DEL"}


@dataclass(slots=True)
class Life:
    """What is surely so of one key: since when it is live, since when it is gone, its newest acknowledged revision."""

    key: str
    live_since: float | None = None
    gone_since: float | None = None
    revision: int = 0


@dataclass(slots=True)
class Verdict:
    """What came of many listings. ``wrong`` counts, by kind, what no listing may answer; ``stale`` is told apart.

    Stale: a record older than one whose write was acknowledged before the listing began, or one whose removal was.
    """

    answers: int = 0
    unavailable: int = 0
    wrong: Counter[str] = field(default_factory=Counter[str])
    stale: int = 0
    first_wrong: str = ""


class Churn:
    """A bucket whose keys are rewritten, and some removed and created again, as fast as the broker takes it."""

    def __init__(self, bucket: str, apis: Sequence[JetStream], *, live: int, recreated: int) -> None:
        self._bucket = bucket
        self._apis = apis
        self._loop = asyncio.get_running_loop()
        self.writes = 0
        self.kept = [Life(f"seat.s{number}") for number in range(live)]
        self.coming_and_going = [Life(f"seat.t{number}") for number in range(recreated)]

    @asynccontextmanager
    async def going_on(self, writers: int) -> AsyncGenerator[None]:
        """Write while the block runs. Every key that stays is there when it begins."""
        for life in self.kept:
            await self._put(self._apis[0], life)
        tasks = Tasks("churn")
        for number in range(writers):
            api = self._apis[number % len(self._apis)]
            tasks.start("rewrite", self._rewrite(api, self.kept[number % len(self.kept) :: writers]))
        for number, life in enumerate(self.coming_and_going):
            tasks.start("recreate", self._recreate(self._apis[number % len(self._apis)], life))
        try:
            yield
        finally:
            await tasks.close()

    async def judge(self, verdict: Verdict, listing: Callable[[], Awaitable[Iterable[tuple[str, int]]]]) -> None:
        """List once and count what came of it; a revision of 0 is one that the listing does not tell."""
        began = self._loop.time()
        before = {life.key: life.revision for life in self._lives()}
        try:
            found = [*await listing()]
        except Unavailable:
            verdict.unavailable += 1
            # Where the link is down the next one fails at once: others must get their turn.
            await asyncio.sleep(0.01)
            return
        verdict.answers += 1
        listed = dict(found)
        kinds = [*self._faults(began, before, listed)]
        if len(listed) != len(found):
            kinds.append("twice")
        verdict.stale += sum(0 < revision < before[key] for key, revision in found)
        if kinds:
            verdict.wrong.update(set(kinds))
            verdict.first_wrong = verdict.first_wrong or f"{sorted(listed)}: {kinds}"

    def _faults(self, began: float, before: Mapping[str, int], listed: Mapping[str, int]) -> Iterable[str]:
        for life in self._lives():
            if life.live_since is not None and life.live_since < began and life.key not in listed:
                yield "missing"
            if life.gone_since is not None and life.gone_since < began and life.key in listed:
                yield "removed before"
        yield from ("unknown key" for key in listed if key not in before)

    def _lives(self) -> list[Life]:
        return [*self.kept, *self.coming_and_going]

    async def _rewrite(self, api: JetStream, lives: Sequence[Life]) -> None:
        while True:
            for life in lives:
                await self._put(api, life)
            await asyncio.sleep(0)

    async def _recreate(self, api: JetStream, life: Life) -> None:
        while await self._put(api, life) and await self._remove(api, life):
            pass

    async def _put(self, api: JetStream, life: Life) -> bool:
        life.gone_since = None
        revision = await self._publish(api, life, {})
        if revision:
            life.revision = max(life.revision, revision)
            life.live_since = self._loop.time() if life.live_since is None else life.live_since
        return revision > 0

    async def _remove(self, api: JetStream, life: Life) -> bool:
        life.live_since = None
        revision = await self._publish(api, life, _REMOVAL)
        if revision:
            life.revision, life.gone_since = revision, self._loop.time()
        return revision > 0

    async def _publish(self, api: JetStream, life: Life, headers: Mapping[str, str]) -> int:
        """The revision, or 0 where what became of it is not known."""
        subject = f"$KV.{self._bucket}.{life.key}"
        try:
            ack = await api.publish(subject, b"" if headers else life.key.encode(), headers=headers)
        except (Unavailable, ApiError):
            await asyncio.sleep(0.01)
            return 0
        self.writes += 1
        return ack.seq
