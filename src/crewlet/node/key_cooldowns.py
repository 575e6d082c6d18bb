"""Which keys rest: what one model of this node learned at a vendor's hands, known to all of them, and to the fleet."""

from __future__ import annotations

from crewlet.base.clock import Clock
from crewlet.base.tasks import Tasks
from crewlet.coordination import Cooldown, CooldownPull, Cooldowns
from crewlet.llm import Bench, FailureKind, Models

__all__ = ["KeyCooldowns"]


class KeyCooldowns:
    """Carries benches between the models of this node, whichever company they were built for, and to and from peers.

    Each model keeps its own keys, and nobody asks here before a call: what is known has been told by then. A node that
    is alone tells nobody, since there is nobody to tell.
    """

    def __init__(self, node_id: str, clock: Clock) -> None:
        self._node_id = node_id
        self._clock = clock
        self._models: list[Models] = []
        self._fleet: Cooldowns | None = None
        self._pull: CooldownPull | None = None
        self._tasks = Tasks("key_cooldowns", on_failure=self._pull_again)

    def take_over(self, models: Models) -> None:
        """These models serve from now on, and know what those before them knew; turns may still use the others."""
        if self._models:
            models.take_over(self._models[-1])
        self._models.append(models)

    def retire(self, models: Models) -> None:
        """No turn uses these any more."""
        self._models.remove(models)

    async def share(self, fleet: Cooldowns) -> None:
        """Learn what rests in the fleet, at once and every now and then; tell it of each bench from now on.

        Where the records cannot be read, this node begins with nothing on its benches.
        """
        self._fleet, self._pull = fleet, CooldownPull(fleet, self._learn, self._clock)
        await self._pull.pull()
        self._tasks.start("pull", self._pull.keep())

    async def close(self) -> None:
        """Learn and tell nothing any more."""
        await self._tasks.close()
        if self._fleet is not None:
            await self._fleet.close()

    async def benched(self, bench: Bench) -> None:
        """A model of this node has met with this; returns soon, whatever becomes of the telling (C-095)."""
        for models in self._models:
            models.rest(bench)
        if self._fleet is not None:
            await self._fleet.publish(
                Cooldown(
                    provider_key=bench.provider_key,
                    hint=bench.hint,
                    until=bench.until,
                    reason=bench.reason.value,
                    reported_by=self._node_id,
                )
            )

    def _learn(self, cooldown: Cooldown) -> bool:
        bench = Bench(cooldown.provider_key, cooldown.hint, cooldown.until, _reason(cooldown))
        # All of them are told: not only the first to which it is news.
        return sum(models.rest(bench) for models in self._models) > 0

    def _pull_again(self, _task: str, _failure: BaseException) -> None:
        assert self._pull is not None, "only a pull runs here"
        # It waits before it reads, so one that fails each time is no hot loop.
        self._tasks.start("pull", self._pull.keep())


def _reason(cooldown: Cooldown) -> FailureKind:
    """Why the key rests; a reason that only a later release knows is told as the plainest one."""
    try:
        return FailureKind(cooldown.reason)
    except ValueError:
        return FailureKind.RATE_LIMITED
