"""Runs the company's duties on this node, one loop each, and the chores that every node does for itself (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination import Leases
from crewlet.duties.duty import Chore, Duty, DutyStatus
from crewlet.duties.tenure import DutyTenure
from crewlet.duties.tick_loop import TickLoop

__all__ = ["DutyOverran", "DutyRunner"]

_log = structlog.get_logger(__name__)

_WORKERS = "workers"


class DutyOverran(CrewletError):
    """A tick's work took as long as its claim lasts, and was stopped: a peer may have the duty from now on."""


@dataclass(frozen=True, slots=True)
class _Running:
    loop: TickLoop
    task: asyncio.Task[None]
    tenure: DutyTenure | None


class DutyRunner:
    """The duties of one node. A duty is claimed per tick and given back at the end; there is no other handoff.

    Work that takes longer than its claim lasts is stopped shortly before, not renewed: a TTL is sized so that no
    healthy tick comes near it, and work that hangs must not keep the duty from a peer.

    A node without the role ``workers`` claims none; its chores it does all the same.
    """

    def __init__(self, leases: Leases, *, owner: str, node_id: str, clock: Clock, roles: Iterable[str]) -> None:
        self._leases = leases
        self._owner = owner
        self._node_id = node_id
        self._clock = clock
        self._works = _WORKERS in roles
        self._tasks = Tasks("duties")
        self._running: dict[str, _Running] = {}
        self._stopped = False

    def start(self, duties: Sequence[Duty], chores: Sequence[Chore] = ()) -> None:
        """Tick each of them from now on, the first time at once."""
        assert not self._stopped
        for chore in chores:
            self._begin(self._chore_loop(chore), None)
        if not self._works:
            _log.info("duties_refused", duties=[duty.times.name for duty in duties], missing_role=_WORKERS)
            return
        for duty in duties:
            tenure = DutyTenure(duty.times, self._leases, self._clock, owner=self._owner, node_id=self._node_id)
            self._begin(self._duty_loop(duty, tenure), tenure)

    def status(self) -> tuple[DutyStatus, ...]:
        """How each of them stands here."""
        return tuple(each.loop.status(held=each.tenure is None or each.tenure.held) for each in self._running.values())

    def problems(self) -> tuple[str, ...]:
        """What a person should know of them, in sentences."""
        dead = () if self._stopped else [each.loop.name for each in self._running.values() if each.task.done()]
        ended = [f"{name} is not done here any more: its loop has ended" for name in dead]
        return (*ended, *(said for each in self.status() if (said := _problem(each))))

    async def stop(self) -> None:
        """Every loop ends with the tick under way, and what was held is given back; harmless when repeated.

        A tick that does not end soon is cancelled. One that does not end even then keeps its lease until that lapses.
        """
        self._stopped = True
        running = [*self._running.values()]
        for each in running:
            each.loop.stop()
        await self._end(running)
        await asyncio.gather(
            *(each.tenure.give_back("stop") for each in running if each.tenure is not None and each.task.done())
        )

    async def _end(self, running: Sequence[_Running]) -> None:
        tasks = [each.task for each in running]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=limits.DUTY_LAST_TICK_MAX_S)
        if not late:
            return
        for task in late:
            task.cancel()
        _, stuck = await asyncio.wait(late, timeout=limits.DUTY_CANCELLED_MAX_S)
        for each in running:
            if each.task in stuck:
                _log.error("duty_not_ended", duty=each.loop.name, waited_s=limits.DUTY_CANCELLED_MAX_S)

    def _begin(self, loop: TickLoop, tenure: DutyTenure | None) -> None:
        assert loop.name not in self._running
        self._running[loop.name] = _Running(loop, self._tasks.start(loop.name, loop.run()), tenure)

    def _chore_loop(self, chore: Chore) -> TickLoop:
        async def tick() -> bool:
            try:
                async with asyncio.timeout(chore.every_s):
                    await chore.work()
            except TimeoutError as error:
                raise DutyOverran(f"{chore.name}: not done within {chore.every_s:g} s") from error
            return True

        return TickLoop(chore.name, chore.every_s, tick, self._clock, may_take_s=chore.every_s)

    def _duty_loop(self, duty: Duty, tenure: DutyTenure) -> TickLoop:
        async def tick() -> bool:
            if reason := duty.withheld():
                # Neither renewed nor given back: it lapses, and a peer continues (S1).
                _log.debug("duty_withheld", duty=duty.times.name, reason=reason)
                return False
            try:
                fence = await tenure.take()
            except Unavailable as error:
                _log.warning("duty_claim_unknown", duty=duty.times.name, error=str(error))
                return False
            if fence is None:
                loop.forgive()
                return False
            bound = asyncio.timeout(tenure.left_s())
            try:
                async with bound:
                    await duty.work(fence)
            except TimeoutError as error:
                if not bound.expired():
                    raise
                raise DutyOverran(f"{duty.times.name}: stopped, its claim of {duty.times.ttl_s:g} s ends") from error
            return True

        async def after_failure() -> None:
            await tenure.give_back("failed")

        loop = TickLoop(
            duty.times.name,
            duty.times.every_s,
            tick,
            self._clock,
            may_take_s=duty.times.ttl_s,
            after_failure=after_failure,
        )
        return loop


def _problem(status: DutyStatus) -> str:
    if status.overdue:
        return f"{status.name} has been at work for {status.running_for_s:.0f} s and does not end"
    if status.error:
        times = "once" if status.failures == 1 else f"{status.failures} times"
        return f"{status.name} failed {times} here: {status.error}"
    return ""
