"""Whether this node's broker keeps its copies as a member: looked at, told, and started again where that mends it.

The other members take what is written while one of them stores nothing, so nobody notices that one more failure would
stop them all.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from crewlet.backends.nats import MemberHealth
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.node.member_standing import MemberStanding, MemberState, after_look, after_silence

__all__ = ["MemberBroker", "MemberPace", "MemberWatch"]

_log = structlog.get_logger(__name__)


class MemberBroker(Protocol):
    """The program behind the member."""

    async def health(self) -> MemberHealth:
        """How it stands by its own word. Raises ``Unavailable``."""
        ...

    async def has_room(self) -> bool:
        """Whether its disk has room enough to go on."""
        ...

    @property
    def directory(self) -> Path | None:
        """Where it keeps what it stores."""
        ...

    async def restart(self) -> None:
        """End it; it is started again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPace:
    """How often the member is looked at, and how often and fast it is started again; the defaults are what ships."""

    look_every_s: float = limits.MEMBER_LOOK_EVERY_S
    restarts_max: int = limits.MEMBER_RESTARTS_MAX
    restart_pause_s: float = limits.MEMBER_RESTART_PAUSE_S


class MemberWatch:
    """Looks every few seconds. ``member`` is what the others know this broker by."""

    def __init__(self, member: str, broker: MemberBroker, clock: Clock, pace: MemberPace) -> None:
        self._member = member
        self._broker = broker
        self._clock = clock
        self._pace = pace
        self._restarts = 0
        self._restarted_at_s: float | None = None
        self._tasks = Tasks("member_watch")
        self.standing = MemberStanding()

    def start(self) -> None:
        """Look from now on, until :meth:`close`."""
        self._tasks.start("look", self._keep_looking())

    async def close(self) -> None:
        """Look no more."""
        await self._tasks.close()

    @property
    def trouble(self) -> str:
        """What a person should know and do; empty where the member is healthy."""
        standing = self.standing
        if standing.state is MemberState.HEALTHY:
            return ""
        if standing.state is MemberState.UNKNOWN:
            return f"whether this node's broker keeps its copies is not known, it does not say: {standing.why}"
        return f"this node's broker is not whole as a member of its cluster: {standing.why} ({self._remedy(standing)})"

    def _remedy(self, standing: MemberStanding) -> str:
        where = self._broker.directory
        if not standing.has_stopped:
            return f"see that the other members run and that the disk of {where} has room: it catches up by itself"
        if self._restarts >= self._pace.restarts_max:
            return f"started again {self._restarts} times in vain: see {where}/broker.log, then restart this node"
        return f"see that the disk of {where} has room: the broker is started again then, by itself"

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._pace.look_every_s)
            before = self.standing
            self.standing = await self._looked(before)
            self._tell(before, self.standing)
            if self.standing.has_stopped:
                await self._mend()

    async def _looked(self, before: MemberStanding) -> MemberStanding:
        try:
            return after_look(before, await self._broker.health())
        except Unavailable as error:
            return after_silence(before, str(error))

    def _tell(self, before: MemberStanding, now: MemberStanding) -> None:
        if now.state is before.state:
            return
        if now.state is MemberState.UNHEALTHY:
            _log.error("broker_member_unhealthy", member=self._member, reason=now.why, remedy=self._remedy(now))
        elif now.state is MemberState.UNKNOWN:
            _log.warning("broker_member_unknown", member=self._member, reason=now.why)
        else:
            self._restarts, self._restarted_at_s = 0, None
            _log.info("broker_member_healthy", member=self._member)

    async def _mend(self) -> None:
        """Start the broker again where its disk has room: one that was full once takes nothing until then."""
        if self._restarts >= self._pace.restarts_max or self._is_settling() or not await self._broker.has_room():
            return
        self._restarts += 1
        self._restarted_at_s = self._clock.elapsed_s()
        _log.warning("broker_member_restarted", member=self._member, attempt=self._restarts, of=self._pace.restarts_max)
        await self._broker.restart()

    def _is_settling(self) -> bool:
        """Whether it was started again so lately that it may still be catching up."""
        at_s = self._restarted_at_s
        return at_s is not None and self._clock.elapsed_s() - at_s < self._pace.restart_pause_s
