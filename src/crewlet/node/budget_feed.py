"""What this node says of the token windows: every fifteen seconds, and at once when one first refuses here (E-142)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import structlog

from crewlet import topics
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.base.trace import fresh_trace
from crewlet.coordination import COMPANY_SCOPE, agent_scope
from crewlet.duties import Chore
from crewlet.events import Event, new_event
from crewlet.events.types import BudgetMeter, BudgetMeters
from crewlet.node.budget_reading import BudgetReading
from crewlet.node.budget_views import NEAR, REFUSING, BudgetsView
from crewlet.turns import RefusedWindow

__all__ = ["BudgetFeed", "meters_of"]

_log = structlog.get_logger(__name__)

_FIRST = {REFUSING: 0, NEAR: 1}


class BudgetFeed:
    """Publishes ``budget_meters``, and knows from the last reading which scopes refuse."""

    def __init__(
        self, reading: BudgetReading, publish: Callable[[str, Event], Awaitable[object]], clock: Clock, ids: Ids
    ) -> None:
        self._reading = reading
        self._publish = publish
        self._clock = clock
        self._ids = ids
        self._tasks = Tasks("budget_feed")
        self._refusing: frozenset[tuple[str, str, str]] = frozenset()
        self._is_silent = True
        self._says_soon = False

    def chore(self) -> Chore:
        """The fixed tick, which every node has."""
        return Chore(name="budget-meters", every_s=limits.BUDGET_METERS_EVERY_S, work=self.say)

    def refused(self, windows: Iterable[RefusedWindow]) -> None:
        """A call or a charge was turned away here; said at once where that is new of one of its windows."""
        new = {(each.scope, each.period, each.label) for each in windows} - self._refusing
        if new:
            self._refusing |= new
            self.say_soon()

    def say_soon(self) -> None:
        """Something about the budgets has changed; told once, however often that is heard meanwhile."""
        if not self._says_soon:
            self._says_soon = True
            self._tasks.start("budget_meters", self._say_now())

    def refuses(self, agent_id: str) -> bool:
        """Whether the last reading had a window without room that this seat's tokens count in."""
        scopes = {scope for scope, _, _ in self._refusing}
        return COMPANY_SCOPE in scopes or agent_scope(agent_id) in scopes

    async def say(self) -> None:
        """Read the counters and publish what they say. Raises ``Unavailable`` where they cannot be read.

        Nothing is said while nothing has a ceiling, but once where the last one went.
        """
        self._says_soon = False
        view = await self._reading.capped()
        if view is None and self._is_silent:
            return
        self._is_silent = view is None
        body = meters_of(view)
        self._refusing = frozenset((m.scope, m.period, m.label) for m in body.meters if m.state == REFUSING)
        event = new_event(body, trace=fresh_trace(self._ids), now=self._clock.now(), ids=self._ids)
        await self._publish(topics.event_topic(event.type), event)

    async def close(self) -> None:
        """Say nothing any more."""
        await self._tasks.close()

    async def _say_now(self) -> None:
        try:
            await self.say()
        except CrewletError as error:
            # The next tick says it.
            _log.info("budget_meters_late", error=str(error))


def meters_of(view: BudgetsView | None) -> BudgetMeters:
    """The windows with a ceiling, at most as many as an event can hold; those that refuse come first."""
    meters = [
        BudgetMeter(
            scope=scope.scope,
            agent_handle=scope.handle,
            period=window.period,
            label=window.label,
            used=window.used,
            max=window.max,
            state=window.state,
            refused_at=window.refused_at,
            resets_at=window.resets_at,
        )
        for scope in (() if view is None else view.scopes)
        for window in scope.windows
        if window.max is not None and window.used is not None
    ]
    meters.sort(key=lambda meter: _FIRST.get(meter.state, len(_FIRST)))
    shown = meters[: limits.BUDGET_METERS_MAX]
    return BudgetMeters(meters=tuple(shown), left_out=len(meters) - len(shown))
