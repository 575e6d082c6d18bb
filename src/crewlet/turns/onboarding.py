"""The onboarding: the phase in which a seat looks around at its place in the company, before its first work there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import structlog

from crewlet.base.errors import Fenced, StoppedByPerson
from crewlet.tools import Tool
from crewlet.turns.builtin_mark_onboarded import MARK_ONBOARDED, MarkOnboarded
from crewlet.turns.builtin_tool_discovery import ActivateTool, ListServerTools
from crewlet.turns.phase import Phase, PhaseBroke
from crewlet.turns.phase_plan import Extension, PhasePlan
from crewlet.turns.phase_record import PhaseClosing
from crewlet.turns.prompts import onboarding_system
from crewlet.turns.repeats import REPEATED_CALL, RepeatedCall
from crewlet.turns.setup import TurnSetup
from crewlet.turns.toolbox import Toolbox
from crewlet.turns.turn_scope import TurnScope
from crewlet.turns.worker_surface import WorkerSurface

__all__ = ["ONBOARDING", "Onboarding"]

_log = structlog.get_logger(__name__)

ONBOARDING: Final = "onboarding"
_ONBOARDED: Final = "onboarded"
_UNMARKED: Final = "unmarked"


class Onboarding:
    """One turn's, if it has one. It is no part of the turn's work: it reads no notes, and its own ends end nothing."""

    def __init__(self, scope: TurnScope, setup: TurnSetup) -> None:
        self._scope = scope
        self._setup = setup
        # Nobody has asked for anything yet, so nothing is changed: as of a worker, what it calls only reads.
        self._surface = WorkerSurface(setup.tools)

    async def due(self) -> str:
        """The place to be onboarded at, claimed; empty where none is due. A script has nothing to find out."""
        onboarder = self._setup.onboarder
        if onboarder is None or not onboarder.is_real or self._scope.config.onboarding_max_tool_rounds < 1:
            return ""
        return await self._setup.onboarding.due(self._scope.events.turn_id)

    def system(self) -> str:
        """Its system prompt."""
        names = [MARK_ONBOARDED, *(tool.row.name for tool in self._others())]
        return onboarding_system(self._setup, names, self._surface.servers())

    async def give_back(self) -> None:
        """What :meth:`due` claimed is free again."""
        await self._setup.onboarding.give_back(self._scope.events.turn_id)

    async def run(self, place: str, system: str) -> None:
        """Run the phase and close its record; a phase that ended without the mark is said, and the seat unmarked.

        What a turn meets in any phase (no model answers, the budget is spent, a store is out of reach) it meets here
        too, and is raised.
        """
        turn_id = self._scope.events.turn_id
        mark = MarkOnboarded(lambda: self._setup.onboarding.mark(turn_id, place))
        try:
            closing = await self._closing(mark, system)
        except BaseException as broke:
            if not _goes_on(broke):
                await self.give_back()
            raise
        if not mark.is_marked:
            why = closing.error or ("the mark is not on record" if mark.ended else "it never said so")
            _log.warning("onboarding_unmarked", seat=self._scope.trigger.handle, turn=turn_id, why=why)
            await self.give_back()
        # Its end follows from replies that are on record, so it is said once even where it failed.
        await self._scope.close_phase(closing, is_final=True)

    async def _closing(self, mark: MarkOnboarded, system: str) -> PhaseClosing:
        try:
            await Phase(self._plan(mark, system), self._scope).run()
        except PhaseBroke as broke:
            kind = str(broke.stop_reason)
            return PhaseClosing(
                decision=_UNMARKED, failed=True, error=str(broke), error_kind=kind, refusal=broke.refusal
            )
        except RepeatedCall as repeated:
            return PhaseClosing(decision=_UNMARKED, failed=True, error=str(repeated), error_kind=REPEATED_CALL)
        decision = _ONBOARDED if mark.is_marked else _UNMARKED
        return PhaseClosing(decision=decision, notes=mark.notes, rescued=not mark.ended)

    def _plan(self, mark: MarkOnboarded, system: str) -> PhasePlan:
        scope, setup = self._scope, self._setup
        assert setup.onboarder is not None, "an onboarding that is on record has a model"
        user = _opening_message(scope.clock.now())
        return PhasePlan(
            phase=ONBOARDING,
            iteration=1,
            model=setup.onboarder,
            system=system,
            user=user,
            toolbox=Toolbox(mark, self._others(), surface=self._surface, activated=scope.activated),
            # A document that was applied meanwhile may have turned it off: what is on record is gone through.
            max_rounds=max(scope.config.onboarding_max_tool_rounds, 1),
            streams=True,
            extension=self._extension(user),
        )

    def _others(self) -> Sequence[Tool]:
        """Its tools beside its end: the discovery pair where a server has anything for it, and what joins it."""
        surface, activated = self._surface, self._scope.activated
        pair: list[Tool] = [ListServerTools(surface), ActivateTool(surface, activated)] if surface.servers() else []
        return [*pair, *self._setup.onboarding_tools]

    def _extension(self, ask: str) -> Extension | None:
        config, judge = self._scope.config, self._setup.judge
        if not config.extension_enabled or judge is None:
            return None
        return Extension(judge, config.onboarding_max_tool_rounds_ceiling, config.extension_round_step, ask=ask)


def _goes_on(broke: BaseException) -> bool:
    """Whether the turn goes on elsewhere, under its claim: it moved, or its process ends. Any other is over."""
    return not isinstance(broke, Exception) or (isinstance(broke, Fenced) and not isinstance(broke, StoppedByPerson))


def _opening_message(now: datetime) -> str:
    return f"It is {now:%Y-%m-%d %H:%M} UTC. Look around at your place in the company, then call `{MARK_ONBOARDED}`."
